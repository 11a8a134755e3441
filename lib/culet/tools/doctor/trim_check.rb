# frozen_string_literal: true

require_relative "../../model/advice"
require_relative "finding"

module Culet
  class Doctor
    # Whether a Ruby process returns free memory after major garbage collections.
    class TrimCheck < Check
      TOPIC = "trim"
      MODES = { "background" => "in a thread", "now" => "in the Ruby thread" }.freeze
      private_constant :TOPIC, :MODES

      # @return [Array<Finding>] none for a program other than Ruby
      def findings
        return [] unless target.ruby?

        mode = Processes::Marks.trimming(target.pid)
        return [ok(TOPIC, "culet/auto returns free memory after major GCs, #{MODES.fetch(mode)}")] if mode
        return [ok(TOPIC, "culet returns free memory by itself")] if target.allocator == "culet"

        [idle]
      end

      private

      def idle
        text = "free memory is not returned after GCs"
        return note(TOPIC, text) if untrimmable?

        note(TOPIC, "#{text}; `culet report #{target.pid}` shows how much that would be", "#{Advice::TRIM}.")
      end

      # An allocator that is unknown or has no function for it.
      def untrimmable?
        definition = Allocators.definitions.find { |known| known.name == target.allocator }
        definition.nil? || definition.untrimmable
      end
    end
  end
end
