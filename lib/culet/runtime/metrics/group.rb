# frozen_string_literal: true

require_relative "../../system/kernel_file"
require_relative "../../system/memory_group"

module Culet
  module Metrics
    # Metrics that all processes of a program share: the memory limit, if culet/limit is loaded, and the pressure on
    # memory (PSI).
    module Group
      # The file of the whole machine, for control groups without one.
      HOST = "/proc/pressure/memory"
      LIMITS = { "culet_limit_bytes" => "limit_bytes", "culet_limit_used_bytes" => "used_bytes",
                 "culet_limit_headroom_bytes" => "headroom_bytes" }.freeze
      private_constant :HOST, :LIMITS

      class << self
        # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
        def samples = limit + pressure

        private

        def limit
          return [] unless defined?(Culet::Limit) && Culet::Limit.respond_to?(:status)

          status = Culet::Limit.status
          LIMITS.filter_map { |name, key| [name, {}, status[key]] if status[key] }
        end

        def pressure
          text = KernelFile.content(@file || pressure_file).to_s
          text.scan(/^(some|full) .*\btotal=(\d+)/).map do |kind, microseconds|
            ["culet_memory_pressure_seconds_total", { "kind" => kind }, microseconds.to_i / 1e6]
          end
        end

        # Keeps the chosen file, unless a transient error caused the choice.
        def pressure_file
          group, problems = MemoryGroup.own
          file = group&.pressure_file
          file = HOST unless file && File.file?(file)
          problems.empty? ? @file = file : file
        end
      end
    end
  end
end
