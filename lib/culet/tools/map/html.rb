# frozen_string_literal: true

require "digest"
require "erb"
require_relative "packing"
require_relative "page_data"

module Culet
  module Map
    # The picture as one HTML file that opens without a network: styles, script and data are inside it. Its content
    # security policy lets this one script run, and nothing be loaded. What comes from the process is data inside
    # base64, and only ever shown as text.
    class Html
      ASSETS = File.expand_path("assets", __dir__)
      SCRIPTS = %w[theme inflate data blocks picture sharing changes words view panel curve pointer main].freeze

      # A page that is larger takes too long to open, and is a burden to send.
      LARGEST_BYTES = 10_000_000

      # Left out first where the page would be too large: what only the closest look shows.
      DISPENSABLE = { blocks: "single blocks", slots: "Ruby's slots" }.freeze
      private_constant :DISPENSABLE

      # @param snapshots [Array<Scope::Snapshot>] one, or a series that the page plays
      # @param views [Array<Hash>] for each of them, what else its PageData takes
      # @param largest_bytes [Integer] of the page; one snapshot, or two, may be larger even without blocks and slots
      # @param changes [Boolean] whether it opens on the last of them, with what changed since the first
      # @param curve [Hash, nil] "title", and "lines": Arrays of a Hash each with "name" and "points", [seconds, bytes] each
      def initialize(snapshots, largest_bytes: LARGEST_BYTES, views: [], curve: nil, changes: false)
        @changes = changes && snapshots.size > 1
        @tables = views.any? { |view| view.to_h[:tables].to_a.any? }
        @curve = curve
        @subject = Totals.new(snapshots.first).subject
        @frames = snapshots.zip(views).map { |snapshot, view| PageData.new(snapshot, **view.to_h).parts }
        @left_out = []
        thin(largest_bytes)
      end

      # @return [Array<String>] what was left out for the sake of size, in words
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

      # Of a long series, the first, the last, and as many evenly between them as there is room for.
      def thin_series(largest)
        all = @frames.size
        kept = (all * (largest - script.bytesize) / data_bytes).clamp(2, all - 1)
        @frames = Array.new(kept) { |number| @frames[number * (all - 1) / (kept - 1)] }
        @left_out << "#{all - kept} of #{all} snapshots"
      end

      def fits?(largest) = data_bytes + script.bytesize <= largest

      def data_bytes = @frames.sum { |parts| parts.sum { |_, text| text.bytesize } }

      def note
        "Left out of this page, which would be too large: #{left_out.join(", ")}." if left_out.any?
      end

      def title = "#{@subject.tr("\n", " ")}: map of memory"

      # @return [Array<Array(String, String)>] id and text of each part
      def sections = [*@frames.each_with_index.flat_map { |parts, number| parts.map { |part, text| ["#{part}-#{number}", text] } }, *([["curve", packed_curve]] if @curve)]

      def packed_curve = Packing.base64(JSON.generate(@curve))

      # All in one function, so that nothing but what the last file names can be reached from outside.
      def script
        @script ||= "(function () {\n\"use strict\";\n#{SCRIPTS.map { |name| asset("#{name}.js") }.join("\n")}\n}());"
      end

      def digest = "sha256-#{Digest::SHA256.base64digest(script)}"
    end
  end
end
