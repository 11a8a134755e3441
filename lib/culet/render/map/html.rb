# frozen_string_literal: true

require_relative "../html_page"
require_relative "page_data"

module Culet
  module Map
    # The map as a page.
    class Html < HtmlPage
      FOLDER = File.expand_path("assets", __dir__)
      SCRIPTS = [*COMMON, "blocks", "picture", "sharing", "changes", "view", "panel", "pointer", "main"].freeze
      STYLES = ["page.css"].freeze

      # Larger pages open slowly and are awkward to send.
      LARGEST_BYTES = 10_000_000

      # Parts that a page over the limit omits first: they are only visible at the closest zoom.
      DISPENSABLE = { blocks: "single blocks", slots: "Ruby's slots" }.freeze
      private_constant :DISPENSABLE

      # @param snapshots [Array<Scope::Snapshot>] one, or a series with a slider
      # @param views [Array<Hash>] further arguments of PageData, one Hash for each snapshot
      # @param largest_bytes [Integer] limit of the page; up to two snapshots without blocks and slots may exceed it
      # @param changes [Boolean] whether the page opens with the changes from the first to the last snapshot
      # @param curve [#title, #svg, #lines, nil] a chart over time; each line has name, colour and last, in bytes
      def initialize(snapshots, largest_bytes: LARGEST_BYTES, views: [], curve: nil, changes: false)
        super()
        @changes = changes && snapshots.size > 1
        @tables = views.any? { |view| view.to_h[:tables].to_a.any? }
        @curve = curve
        @subject = Totals.new(snapshots.first).subject
        @frames = snapshots.zip(views).map { |snapshot, view| PageData.new(snapshot, **view.to_h).parts }
        @left_out = []
        thin(largest_bytes)
      end

      # @return [Array<String>] parts omitted because of the limit
      attr_reader :left_out

      private

      def thin(largest)
        DISPENSABLE.each do |part, words|
          break if fits?(largest)
          next unless @frames.any? { |parts| parts.key?(part) }

          @frames.each { |parts| parts.delete(part) }
          @left_out << words
        end
        thin_series(largest) unless fits?(largest) || @frames.size <= 2
      end

      # Keeps the first, the last, and evenly spaced snapshots between them.
      def thin_series(largest)
        all = @frames.size
        kept = (all * (largest - script.bytesize) / data_bytes).clamp(2, all - 1)
        @frames = Array.new(kept) { |number| @frames[number * (all - 1) / (kept - 1)] }
        @left_out << "#{all - kept} of #{all} snapshots"
      end

      def fits?(largest) = data_bytes + script.bytesize <= largest

      def data_bytes = @frames.sum { |parts| parts.sum { |_, text| text.bytesize } }

      def note
        "Omitted to limit the size of this page: #{left_out.join(", ")}." if left_out.any?
      end

      def title = "#{@subject.tr("\n", " ")}: memory map"

      # @return [Array<Array(String, String)>] id and text of each data element
      def sections
        @frames.each_with_index.flat_map do |parts, number|
          parts.map { |part, text| ["#{part}-#{number}", text] }
        end
      end
    end
  end
end
