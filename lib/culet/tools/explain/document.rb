# frozen_string_literal: true

require "json"
require_relative "../../model/diagnosis"

module Culet
  module Explain
    # A diagnosis as one JSON object of at most 4 KB.
    class Document
      MOST_BYTES = 4096
      # Maximum number of remedies; fewer if their texts are long.
      REMEDIES = 6
      # Longest text.
      MOST_CHARACTERS = 300
      private_constant :REMEDIES, :MOST_CHARACTERS

      # @param remedy [Remedy]
      # @return [Hash{String => Object}]
      def self.remedy(remedy) = remedy.document.transform_values { |value| shortened(value) }

      # @return [Object] a text cut to MOST_CHARACTERS; other values unchanged
      def self.shortened(value)
        value.is_a?(String) && value.size > MOST_CHARACTERS ? "#{value[0, MOST_CHARACTERS - 3]}..." : value
      end

      # @param diagnosis [Diagnosis]
      def initialize(diagnosis)
        @diagnosis = diagnosis
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        REMEDIES.downto(0) do |count|
          document = with(count)
          return document if count.zero? || JSON.generate(document).bytesize <= MOST_BYTES
        end
      end

      private

      def with(count)
        observation = @diagnosis.observation
        { "pid" => observation.members.first.pid, "processes" => observation.members.size,
          "seconds" => observation.seconds.round(1), "total_bytes" => observation.total_bytes,
          "verdict" => @diagnosis.verdict, "sentence" => shortened(@diagnosis.sentence),
          "evidence" => @diagnosis.evidence.map(&:document), "next" => shortened(@diagnosis.next_step),
          "remarks" => @diagnosis.remarks.first(3).map { |text| shortened(text) },
          "remedies" => @diagnosis.remedies.first(count).map { |one| Document.remedy(one) },
          "others" => @diagnosis.others,
          **fit }
      end

      def fit = { "fit" => @diagnosis.fit&.document }.compact

      def shortened(text) = Document.shortened(text)
    end
  end
end
