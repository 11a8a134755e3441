# frozen_string_literal: true

require_relative "../advice"
require_relative "finding"

module Culet
  class Doctor
    # Whether a Ruby process gives free memory back after its major garbage collections.
    class TrimCheck < Check
      TOPIC = "trim"
      MANNERS = { "background" => "a thread of its own", "now" => "its Ruby threads" }.freeze
      private_constant :TOPIC, :MANNERS

      # @return [Array<Finding>] none for a program that is not Ruby, where nothing can be told or advised
      def findings
        return [] unless target.ruby?

        mode = Processes::Trimming.mode(target.pid)
        return [ok(TOPIC, "culet/auto is at work: #{MANNERS.fetch(mode)} give#{"s" if mode == "background"} free memory back after major collections")] if mode
        return [ok(TOPIC, "culet gives back by itself what has stayed free")] if target.allocator == "culet"

        [idle]
      end

      private

      def idle
        text = "nothing gives free memory back after collections"
        return note(TOPIC, text) if untrimmable?

        note(TOPIC, "#{text}; `culet report #{target.pid}` tells how much that would be", "#{Advice::TRIM}.")
      end

      # One that is unknown, or has no call for it.
      def untrimmable?
        definition = Allocators.definitions.find { |known| known.name == target.allocator }
        definition.nil? || definition.untrimmable
      end
    end
  end
end
