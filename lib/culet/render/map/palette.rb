# frozen_string_literal: true

module Culet
  module Map
    # The kinds of cells, their colours and names.
    #
    # The hues are those of Okabe and Ito ("Color Universal Design", 2008), which remain distinguishable with any colour
    # blindness. The colour of a partly used page lies between `empty` and `full`, light and dark, so that it reads
    # without hue too.
    module Palette
      # key: its name in the page's script; title: in the legend; text: in the tooltip; full, empty: "#rrggbb", equal
      # for kinds without shades; dark_full, dark_empty: for the dark theme.
      Kind = Struct.new(:key, :title, :text, :full, :empty, :dark_full, :dark_empty) do
        # @return [Boolean] whether cells are shaded by their bytes in use
        def shaded? = full != empty
      end

      # A cell's kind is an index into this list.
      KINDS = [
        ["gap", "gap", "gap", %w[#e6e6e1], %w[#24272d]],
        ["returned", "not in memory", "not in memory", %w[#ffffff], %w[#101216]],
        ["swapped", "swapped out", "swapped out", %w[#000000], %w[#ffffff]],
        ["heap", "malloc: in use, resident", "malloc", %w[#d55e00 #b9b9b9], %w[#ee7420 #565b64]],
        ["metadata", "malloc: metadata", "allocator metadata", %w[#cc79a7], %w[#d68fb6]],
        ["ruby", "Ruby objects: live slots", "Ruby heap page", %w[#0072b2 #a8d8f4], %w[#4fb0ee #1f4460]],
        ["unwalked", "allocator memory, not walked", "allocator memory, used and free unknown", %w[#8c510a],
         %w[#a5793f]],
        ["stack", "stacks and fibers", "stack", %w[#f0e442], %w[#f0e442]],
        ["jit", "JIT code", "JIT code", %w[#e69f00], %w[#e69f00]],
        ["file", "libraries and files", "library or file", %w[#009e73], %w[#12b086]],
        ["other", "other mappings", "other mapping", %w[#5f5f5f], %w[#9aa0a8]]
      ].map { |*words, light, dark| Kind.new(*words, *light.values_at(0, -1), *dark.values_at(0, -1)).freeze }.freeze

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
