# frozen_string_literal: true

require_relative "../../../lib/culet/render/html_page"
require_relative "../../../lib/culet/text/numbers"
require_relative "../../../lib/culet/text/size"
require_relative "feature"
require_relative "../../../lib/culet/model/origin"

module Culet
  module Boot
    # The tree of requires as a page: a flame graph by time, memory, lookups or compiled code, and the list of gems.
    class Flame < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      SCRIPTS = %w[flame].freeze
      # The figures of each file, in the order of the list in flame.js.
      FIGURES = %w[self_seconds self_cpu_seconds retained_bytes iseq_bytes
                   malloc_bytes objects syscalls failed_syscalls].freeze
      private_constant :FIGURES

      # @param document [Hash] of Document
      def initialize(document)
        super()
        @document = document
      end

      private

      def command = @document["command"].join(" ")

      def features = @document["features"]

      def lead
        files = Text::Numbers.count(features.count { |one| one["error"].nil? }, "file")
        parts = ["#{files} required in #{Text::Numbers.significant(@document["total_seconds"] * 1e3)} ms"]
        code = @document["code"]
        parts << "#{Text::Size.human(code["iseq_bytes"])} of compiled code at the end" if code["count"].positive?
        "#{parts.join(", ")}."
      end

      # Each file as an Array: parent, name, gem (both as numbers of a list), path, error, figures.
      def data
        gems = features.map { |one| one["gem"] }.uniq
        rows = features.map do |one|
          [one["parent"] || -1, one["name"] || one["path"] || Feature::UNNAMED, gems.index(one["gem"]), one["path"],
           one["error"], *FIGURES.map { |key| one[key] }]
        end
        json("gems" => gems, "rows" => rows)
      end
    end
  end
end
