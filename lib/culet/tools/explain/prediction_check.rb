# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/foreign_json"
require_relative "../../system/input_file"
require_relative "../../system/shape"
require_relative "../../text/size"

module Culet
  module Explain
    # Compares the savings that an earlier diagnosis predicted with the memory of a later one.
    class PredictionCheck
      SHAPE = { "total_bytes" => Shape::COUNT, "verdict" => Shape::TEXT,
                "remedies" => [{ "name" => Shape::TEXT, "saves_bytes" => Shape::INTEGER, "low_bytes" => Shape::INTEGER,
                                 "high_bytes" => Shape::INTEGER }] }.freeze
      MOST_BYTES = 64 << 10
      # Verdicts whose remedy in code saves what an hour would add.
      GROWTH = %w[ruby_leak native_leak unknown].freeze
      private_constant :SHAPE, :MOST_BYTES, :GROWTH

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
      # @return [Hash{String => Object}] what came, and the predictions of remedies that are in place now
      def compare(diagnosis)
        before = @before["total_bytes"]
        after = diagnosis.observation.total_bytes
        left = diagnosis.remedies.map(&:name)
        applied = @before["remedies"].reject { |one| left.include?(one["name"]) }
        { "before_bytes" => before, "after_bytes" => after, "saved_bytes" => before - after,
          "applied" => applied.map { |one| one.slice("name", "saves_bytes", "low_bytes", "high_bytes") } }
      end

      # @param result [Hash] of `compare`
      # @return [String] a sentence
      def sentence(result)
        sizes = result.slice("before_bytes", "after_bytes", "saved_bytes").values.map { |bytes| human(bytes) }
        change = format("from %s to %s: %s saved", *sizes)
        return "#{change}; what was advised is advised still" if result["applied"].empty?

        "#{change}; no longer advised: #{result["applied"].map { |one| predicted(one) }.join(", ")}"
      end

      private

      def predicted(one)
        value, low, high = one.values_at("saves_bytes", "low_bytes", "high_bytes").map { |bytes| human(bytes) }
        "#{one["name"]} (predicted #{value}#{" in an hour" if hourly?(one)}, #{low} to #{high})"
      end

      def hourly?(one) = one["name"] == "code" && GROWTH.include?(@before["verdict"])

      def human(bytes) = Text::Size.human(bytes)
    end
  end
end
