# frozen_string_literal: true

module Culet
  module Map
    # The kinds of cells, their colours and names.
    #
    # The hues are those of Okabe and Ito ("Color Universal Design", 2008), which remain distinguishable with any colour
    # blindness. The colour of a partly used page lies between `empty` and `full`, light and dark, so that it reads
    # without hue too.
    module Palette
      # key: its name in the page's script; full, empty: "#rrggbb", equal for kinds without shades; dark_full,
      # dark_empty: for the dark theme; title: in the legend; text: in the tooltip.
      Kind = Struct.new(:key, :full, :empty, :dark_full, :dark_empty, :title, :text, keyword_init: true) do
        # @return [Boolean] whether cells are shaded by their bytes in use
        def shaded? = full != empty
      end

      # A cell's kind is an index into this list.
      KINDS = [
        Kind.new(key: "gap", full: "#e6e6e1", empty: "#e6e6e1", dark_full: "#24272d", dark_empty: "#24272d",
                 title: "gap", text: "gap"),
        Kind.new(key: "returned", full: "#ffffff", empty: "#ffffff", dark_full: "#101216", dark_empty: "#101216",
                 title: "not in memory", text: "not in memory"),
        Kind.new(key: "swapped", full: "#000000", empty: "#000000", dark_full: "#ffffff", dark_empty: "#ffffff",
                 title: "swapped out", text: "swapped out"),
        Kind.new(key: "heap", full: "#d55e00", empty: "#b9b9b9", dark_full: "#ee7420", dark_empty: "#565b64",
                 title: "malloc: in use, resident", text: "malloc"),
        Kind.new(key: "metadata", full: "#cc79a7", empty: "#cc79a7", dark_full: "#d68fb6", dark_empty: "#d68fb6",
                 title: "malloc: metadata", text: "allocator metadata"),
        Kind.new(key: "ruby", full: "#0072b2", empty: "#a8d8f4", dark_full: "#4fb0ee", dark_empty: "#1f4460",
                 title: "Ruby objects: live slots", text: "Ruby heap page"),
        Kind.new(key: "unwalked", full: "#8c510a", empty: "#8c510a", dark_full: "#a5793f", dark_empty: "#a5793f",
                 title: "allocator memory, not walked", text: "allocator memory, used and free unknown"),
        Kind.new(key: "stack", full: "#f0e442", empty: "#f0e442", dark_full: "#f0e442", dark_empty: "#f0e442",
                 title: "stacks and fibers", text: "stack"),
        Kind.new(key: "jit", full: "#e69f00", empty: "#e69f00", dark_full: "#e69f00", dark_empty: "#e69f00",
                 title: "JIT code", text: "JIT code"),
        Kind.new(key: "file", full: "#009e73", empty: "#009e73", dark_full: "#12b086", dark_empty: "#12b086",
                 title: "libraries and files", text: "library or file"),
        Kind.new(key: "other", full: "#5f5f5f", empty: "#5f5f5f", dark_full: "#9aa0a8", dark_empty: "#9aa0a8",
                 title: "other mappings", text: "other mapping")
      ].freeze

      INDEX = KINDS.each_with_index.to_h { |kind, index| [kind.key.to_sym, index] }.freeze

      # Indices of resident kinds.
      RESIDENT = (KINDS.size.times.to_a - INDEX.values_at(:gap, :returned, :swapped)).freeze

      # Colours of blocks and slots.
      DARK_BLOCKS = { "used" => "#ee7420", "free" => "#4a4f57", "cached" => "#e69f00", "overhead" => "#d68fb6",
                      "live" => "#4fb0ee", "vacant" => "#1f4460" }.freeze
      BLOCKS = { "used" => "#d55e00", "free" => "#d9d9d9", "cached" => "#e69f00", "overhead" => "#cc79a7",
                 "live" => "#0072b2", "vacant" => "#c4e4f7" }.freeze

      # A mapping's use => the kind of its pages.
      USES = { "malloc" => :unwalked, "allocator" => :metadata, "ruby" => :ruby, "stack" => :stack, "fiber" => :stack,
               "jit" => :jit, "library" => :file, "file" => :file }.freeze

      module_function

      # @param use [String] of a mapping
      # @return [Integer] index of the kind of its resident pages
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
