# frozen_string_literal: true

module Culet
  module Map
    # What a cell of the picture can be, its colour, and what to call it.
    #
    # The hues are those of Okabe and Ito, which people with any kind of colour blindness tell apart ("Color Universal
    # Design", 2008), with a brown that is darker than the red it resembles. Where a cell may be part full, its colour goes
    # from `empty` to `full`, from light to dark, so that it reads without any hue too.
    module Palette
      # key: as the page's script names it; full, empty: "#rrggbb", equal where a cell is never part full;
      # dark_full, dark_empty: the same on a dark page, where what is not in memory is darker than the ground;
      # title: for the legend; text: for who points at a cell.
      Kind = Struct.new(:key, :full, :empty, :dark_full, :dark_empty, :title, :text, keyword_init: true) do
        # @return [Boolean] whether it is shaded by how full it is
        def shaded? = full != empty
      end

      # A cell's kind is an index into this list.
      KINDS = [
        Kind.new(key: "gap", full: "#e6e6e1", empty: "#e6e6e1", dark_full: "#24272d", dark_empty: "#24272d",
                 title: "between", text: "nothing"),
        Kind.new(key: "returned", full: "#ffffff", empty: "#ffffff", dark_full: "#101216", dark_empty: "#101216",
                 title: "returned, or never touched", text: "not in memory"),
        Kind.new(key: "swapped", full: "#000000", empty: "#000000", dark_full: "#ffffff", dark_empty: "#ffffff",
                 title: "swapped out", text: "swapped out"),
        Kind.new(key: "heap", full: "#d55e00", empty: "#b9b9b9", dark_full: "#ee7420", dark_empty: "#565b64",
                 title: "malloc: in use, resident", text: "malloc"),
        Kind.new(key: "metadata", full: "#cc79a7", empty: "#cc79a7", dark_full: "#d68fb6", dark_empty: "#d68fb6",
                 title: "malloc: its own records", text: "the allocator's own records"),
        Kind.new(key: "ruby", full: "#0072b2", empty: "#a8d8f4", dark_full: "#4fb0ee", dark_empty: "#1f4460",
                 title: "Ruby objects: live slots", text: "Ruby's heap page"),
        Kind.new(key: "unwalked", full: "#8c510a", empty: "#8c510a", dark_full: "#a5793f", dark_empty: "#a5793f",
                 title: "an allocator's, not told apart", text: "an allocator's memory, used and free not told apart"),
        Kind.new(key: "stack", full: "#f0e442", empty: "#f0e442", dark_full: "#f0e442", dark_empty: "#f0e442",
                 title: "stacks and fibers", text: "a stack"),
        Kind.new(key: "jit", full: "#e69f00", empty: "#e69f00", dark_full: "#e69f00", dark_empty: "#e69f00",
                 title: "compiled code (JIT)", text: "compiled code"),
        Kind.new(key: "file", full: "#009e73", empty: "#009e73", dark_full: "#12b086", dark_empty: "#12b086",
                 title: "libraries and files", text: "a library or a file"),
        Kind.new(key: "other", full: "#5f5f5f", empty: "#5f5f5f", dark_full: "#9aa0a8", dark_empty: "#9aa0a8",
                 title: "other mappings", text: "another mapping")
      ].freeze

      INDEX = KINDS.each_with_index.to_h { |kind, index| [kind.key.to_sym, index] }.freeze

      # Indices of the kinds that are in memory.
      RESIDENT = (KINDS.size.times.to_a - INDEX.values_at(:gap, :returned, :swapped)).freeze

      # Colours of what is seen inside a page, where blocks and slots are told one by one.
      DARK_BLOCKS = { "used" => "#ee7420", "free" => "#4a4f57", "cached" => "#e69f00", "overhead" => "#d68fb6",
                      "live" => "#4fb0ee", "vacant" => "#1f4460" }.freeze
      BLOCKS = { "used" => "#d55e00", "free" => "#d9d9d9", "cached" => "#e69f00", "overhead" => "#cc79a7",
                 "live" => "#0072b2", "vacant" => "#c4e4f7" }.freeze

      # A mapping's use => the kind of its pages.
      USES = { "malloc" => :unwalked, "allocator" => :metadata, "ruby" => :ruby, "stack" => :stack, "fiber" => :stack, "jit" => :jit,
               "library" => :file, "file" => :file }.freeze

      module_function

      # @param use [String] of a mapping
      # @return [Integer] index of the kind that its resident pages are
      def kind_of_use(use) = INDEX.fetch(USES.fetch(use, :other))

      # @param colour [String] "#rrggbb"
      # @return [Array(Integer, Integer, Integer)] red, green, blue, 0 to 255
      def rgb(colour) = colour.delete_prefix("#").scan(/../).map(&:hex)

      # @param kind [Integer] index of a kind
      # @param fullness [Float] 0 to 1
      # @return [Array(Integer, Integer, Integer)]
      def shade(kind, fullness)
        empty, full = KINDS.fetch(kind).then { |one| [rgb(one.empty), rgb(one.full)] }
        empty.zip(full).map { |from, to| (from + ((to - from) * fullness)).round }
      end
    end
  end
end
