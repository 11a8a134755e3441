# frozen_string_literal: true

require_relative "../../../lib/culet/render/html_page"
require_relative "../../../lib/culet/text/numbers"
require_relative "feature"
require_relative "../../../lib/culet/model/origin"

module Culet
  module Boot
    # The tree of requires as a page: a flame graph by time, memory, lookups or compiled code, and the list of gems.
    class Flame < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      SCRIPTS = [*EXPLORING, "requires", "colours", "main"].freeze
      # The figures of each file, in the order of the list in requires.js.
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
        files = count(features.count { |one| one["error"].nil? }, "file")
        parts = ["#{files} required in #{Text::Numbers.significant(@document["total_seconds"] * 1e3)} ms"]
        code = @document["code"]
        parts << "#{size(code["iseq_bytes"])} of compiled code at the end" if code["count"].positive?
        "#{parts.join(", ")}."
      end

      # Columns with a value for all requires, then for each file; the numbers of files begin at 1.
      def data
        gems = features.map { |one| one["gem"] }.uniq
        { "gems" => gems, "parent" => column(-1) { |one| (one["parent"] || -1) + 1 },
          "name" => column("all requires") { |one| one["name"] || one["path"] || Feature::UNNAMED },
          "gem" => column(-1) { |one| gems.index(one["gem"]) }, "path" => column { |one| one["path"] },
          "error" => column { |one| one["error"] }, "values" => FIGURES.map { |key| column { |one| one[key] } } }
      end

      def column(all = nil, &value) = [all, *features.map(&value)]
    end
  end
end
