# frozen_string_literal: true

require "rbconfig"
require_relative "../../benchmark/machine"
require_relative "../../benchmark/runner"
require_relative "load"
require_relative "run"
require_relative "sampler"

module Culet
  module Compare
    # Makes the runs of a plan and measures each by a Run.
    class Runner < Benchmark::Runner
      # @param ruby [String] that runs the built-in workloads
      # @param options [Hash] as for Benchmark::Runner
      def initialize(ruby: RbConfig.ruby, **options)
        super(**options)
        @machine = Benchmark::Machine.new(plan: @plan, ruby: ruby)
      end

      # @return [Hash] the result document of Benchmark::Runner
      # @raise [Culet::Error] when a command cannot be run
      def call
        super({ **@machine.to_h, **settings }) do |scheduled|
          Run.new(workload: scheduled.workload, choice: scheduled.choice, plan: @plan, interruption: @interruption).call
        end
      end

      private

      def settings
        common = { "scale" => @plan.scale, "sampling_interval_seconds" => Sampler::INTERVAL_SECONDS }
        return { **common, "load_generator" => nil } unless @plan.workloads.any?(&:server?)

        { **common, "load_generator" => Load.version, "load_seconds" => @plan.duration_seconds,
          "load_connections" => @plan.connections }
      end
    end
  end
end
