# frozen_string_literal: true

require "digest"
require "erb"
require_relative "../packing"
require_relative "page_data"

module Culet
  module Map
    # The map as one HTML file with styles, script and data inside. Its content security policy allows this one script
    # and no external resource. Text from the process is base64 data, and the script only ever inserts it as text.
    class Html
      ASSETS = File.expand_path("assets", __dir__)
      SCRIPTS = %w[theme data blocks picture sharing changes words tip view panel curve pointer main].freeze

      # Larger pages open slowly and are awkward to send.
      LARGEST_BYTES = 10_000_000

      # Parts that a page over the limit omits first: they are only visible at the closest zoom.
      DISPENSABLE = { blocks: "single blocks", slots: "Ruby's slots" }.freeze
      private_constant :DISPENSABLE

      # @param snapshots [Array<Scope::Snapshot>] one, or a series with a slider
      # @param views [Array<Hash>] further arguments of PageData, one Hash for each snapshot
      # @param largest_bytes [Integer] limit of the page; up to two snapshots without blocks and slots may exceed it
      # @param changes [Boolean] whether the page opens with the changes from the first to the last snapshot
      # @param curve [Hash, nil] "title", and "lines": Arrays of a Hash each with "name" and "points", [seconds, bytes]
      #   each
      def initialize(snapshots, largest_bytes: LARGEST_BYTES, views: [], curve: nil, changes: false)
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

      # @return [String] the page
      def to_s = ERB.new(asset("page.html.erb"), trim_mode: "-").result(binding)

      private

      def h(text) = ERB::Util.html_escape(text)

      def asset(name) = File.read(File.join(ASSETS, name), encoding: Encoding::UTF_8)

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
        frames = @frames.each_with_index.flat_map do |parts, number|
          parts.map { |part, text| ["#{part}-#{number}", text] }
        end
        @curve ? [*frames, ["curve", packed_curve]] : frames
      end

      def packed_curve = Packing.base64(JSON.generate(@curve))

      # One function around all files: only `culetMap` is global.
      def script
        @script ||= "(function () {\n\"use strict\";\n#{SCRIPTS.map { |name| asset("#{name}.js") }.join("\n")}\n}());"
      end

      def digest = "sha256-#{Digest::SHA256.base64digest(script)}"
    end
  end
end
