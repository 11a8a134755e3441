# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/foreign_json"
require_relative "../../system/input_file"
require_relative "../../system/shape"
require_relative "../../text/lines"
require_relative "../../text/size"
require_relative "document"

module Culet
  module Explain
    # Compares the savings that an earlier diagnosis predicted with the memory of a later one.
    class PredictionCheck
      SHAPE = { "total_bytes" => Shape::COUNT, "verdict" => Shape::TEXT,
                "evidence" => [{ "name" => Shape::TEXT, "value" => Shape.nullable(Shape::NUMBER) }],
                "remedies" => [{ "name" => Shape::TEXT, "line" => Shape::TEXT, "saves_bytes" => Shape::INTEGER,
                                 "low_bytes" => Shape::INTEGER, "high_bytes" => Shape::INTEGER }] }.freeze
      MOST_BYTES = 64 << 10
      # Verdicts whose saving is the growth of an hour.
      GROWTH = %w[ruby_leak native_leak unknown].freeze
      # A command with the number of a process, which may have ended since.
      SEARCH = /\A(culet \w+) \d+/
      private_constant :SHAPE, :MOST_BYTES, :GROWTH, :SEARCH

      # @param path [String] a document of `culet explain --json`
      # @return [PredictionCheck]
      # @raise [Culet::Error] for another document
      def self.load(path)
        text = InputFile.read(path, what: "a document of `culet explain --json`", most_bytes: MOST_BYTES)
        new(Shape.check(ForeignJson.parse(text), SHAPE, name: path))
      rescue JSON::ParserError
        raise Error, "#{path} is no document of `culet explain --json`"
      end

      # @param before [Hash] the earlier document
      def initialize(before)
        @before = before
      end

      # @param diagnosis [Diagnosis] the later one
      # @return [Hash{String => Object}] the change of the tree, and the predictions of remedies that are now in place
      def compare(diagnosis)
        before = @before["total_bytes"]
        after = diagnosis.observation.total_bytes
        rates = [@before["evidence"], diagnosis.evidence.map(&:document)].map { |figures| growth(figures) }
        applied = @before["remedies"].reject { |one| advised?(one, diagnosis) }
        { "before_bytes" => before, "after_bytes" => after, "saved_bytes" => before - after,
          "before_growth_bytes_per_minute" => rates.first, "after_growth_bytes_per_minute" => rates.last,
          "applied" => applied.map { |one| one.slice("name", "line", "saves_bytes", "low_bytes", "high_bytes") } }
      end

      # @param result [Hash] of `compare`
      # @return [String] a sentence
      def sentence(result)
        sizes = result.values_at("before_bytes", "after_bytes", "saved_bytes").map { |bytes| human(bytes.abs) }
        sign = result["saved_bytes"].negative? ? "more" : "saved"
        change = format("from %s to %s: %s #{sign}", *sizes) + growing(result)
        return "#{change}; nothing of what was advised is in place" if result["applied"].empty?

        "#{change}; no longer advised: #{result["applied"].map { |one| predicted(one) }.join(", ")}"
      end

      private

      # @return [Integer, nil] bytes; nil: no growth was found
      def growth(figures) = figures.find { |one| one["name"] == "growth_bytes_per_minute" }&.fetch("value")

      # Compares remedies in code by the line or the holder, settings by their name, because their text may differ.
      def advised?(before, diagnosis)
        name, line = identity(before)
        now = diagnosis.remedies.map { |one| identity(Document.remedy(one)) }
        now.any? { |other, words| line == words || (name == other && name != "code") } ||
          diagnosis.others.include?(name)
      end

      def identity(remedy) = [remedy["name"], remedy["line"].sub(SEARCH, '\1')]

      def growing(result)
        rates = result.values_at("before_growth_bytes_per_minute", "after_growth_bytes_per_minute")
        return "" unless rates.any?

        format(", growth from %s to %s a minute", *rates.map { |bytes| human(bytes.to_i) })
      end

      def predicted(one)
        value, low, high = one.values_at("saves_bytes", "low_bytes", "high_bytes").map { |bytes| human(bytes) }
        code = one["name"] == "code"
        hourly = " in an hour" if code && GROWTH.include?(@before["verdict"])
        "#{code ? Text::Lines.printable(one["line"]) : one["name"]} (predicted #{value}#{hourly}, #{low} to #{high})"
      end

      def human(bytes) = Text::Size.human(bytes)
    end
  end
end
