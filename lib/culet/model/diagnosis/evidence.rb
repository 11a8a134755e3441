# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  class Diagnosis
    # Name => title of each figure.
    EVIDENCE_TITLES = { "growth_bytes_per_minute" => "growth per minute",
                        "native_growth_bytes_per_minute" => "native growth per minute", "in_use_bytes" => "in use",
                        "total_bytes" => "all processes",
                        "malloc_free_bytes" => "malloc: free", "malloc_used_bytes" => "malloc: in use",
                        "ruby_free_bytes" => "Ruby: free slots", "ruby_objects_bytes" => "Ruby: objects",
                        "unshared_bytes" => "copied by workers", "inherited_bytes" => "inherited by workers",
                        "workers" => "workers", "loaded_bytes" => "loaded by each worker",
                        "garbage_bytes" => "garbage", "reachable_bytes" => "reachable",
                        "peak_bytes" => "at the peak", "usual_bytes" => "usually",
                        "unused_bytes" => "code that never ran", "iseq_bytes" => "compiled code",
                        "limit_bytes" => "limit", "used_bytes" => "in use of it" }.freeze
    private_constant :EVIDENCE_TITLES

    # A figure of the evidence: name, value, and the 95 % interval of an estimate.
    Evidence = Struct.new(:name, :value, :low, :high, keyword_init: true) do
      # @return [String]
      def title = EVIDENCE_TITLES.fetch(name)

      # @return [String] the value, as text
      def amount = name == "workers" ? value.to_s : Text::Size.human(value)

      # @return [String, nil] "1.2 MB to 3.4 MB"; nil without an interval
      def interval
        bounds = [low, high]
        bounds.map { |bound| Text::Size.human(bound) }.join(" to ") if bounds.all? { |bound| bound&.finite? }
      end

      # @return [Hash{String => Object}] for JSON, without bounds that are not finite
      def document = { "name" => name, "value" => whole(value), "low" => whole(low), "high" => whole(high) }

      private

      def whole(number)
        return number unless number.is_a?(Float)

        number.finite? ? number.round : nil
      end
    end

    # A cause of the size of processes. name: a verdict; bytes: the memory at stake; sentence: the verdict in words;
    # evidence: the figures that support the verdict.
    Cause = Struct.new(:name, :bytes, :sentence, :evidence, keyword_init: true) do
      # @return [Boolean, nil] whether the processes have shared nothing from the start
      attr_accessor :never_shared
    end
  end
end
