# frozen_string_literal: true

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

        mode = setup.trimming
        return [ok(TOPIC, "culet/auto returns free memory after major GCs, #{MODES.fetch(mode)}")] if mode
        return [ok(TOPIC, "culet returns free memory by itself")] if setup.culet?

        [note(TOPIC, "free memory is not returned after GCs", advice("trim"))]
      end
    end
  end
end
