# frozen_string_literal: true

require_relative "palette"

module Culet
  module Map
    # Replaces the cells of Ruby heap pages, which malloc sees as full blocks, by the bytes of their live slots.
    class RubyFill
      # @param model [Model] with its cells placed
      # @param page_bytes [Integer] of the kernel
      def initialize(model, page_bytes)
        @model = model
        @page_bytes = page_bytes
        # With large kernel pages, several Ruby pages share a cell.
        @shown = "\0".b * model.cells.size
        @resident = %i[heap unwalked ruby].map { |key| Palette::INDEX.fetch(key) }
      end

      # Marks the pages of the Ruby heap as shown.
      def call = @model.snapshot.ruby_pages.each { |page| show(page) }

      private

      def show(page)
        live = page.live.unpack1("b*")
        past = page.address + page.first_slot + (page.slots * page.slot_bytes)
        (page.address...past).step(@page_bytes) do |address|
          cell = @model.cell_at(address)
          next unless cell && @resident.include?(@model.cells.kind(cell))

          @model.cells.change(cell, Palette::INDEX.fetch(:ruby))
          before = @shown.getbyte(cell).zero? ? 0 : @model.cells.used_bytes(cell)
          @model.cells.use(cell, 1, [before + live_bytes(page, live, address), @page_bytes].min)
          @shown.setbyte(cell, 1)
        end
      end

      # The slots that start in this kernel page.
      def live_bytes(page, live, address)
        first = page.address + page.first_slot
        from, past = [address, address + @page_bytes].map { |at| [-((first - at) / page.slot_bytes), 0].max }
        live[from...past].to_s.count("1") * page.slot_bytes
      end
    end
  end
end
