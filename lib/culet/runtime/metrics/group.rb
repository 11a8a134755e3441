# frozen_string_literal: true

require_relative "../../system/kernel_file"

module Culet
  module Metrics
    # What all processes of a program have in common: the memory limit, if culet/limit is loaded, and the pressure on
    # memory (PSI).
    module Group
      # The whole machine's, where the control group has none.
      HOST = "/proc/pressure/memory"
      OWN = "/proc/self/cgroup"
      LIMITS = { "culet_limit_bytes" => "limit_bytes", "culet_limit_used_bytes" => "used_bytes",
                 "culet_limit_headroom_bytes" => "headroom_bytes" }.freeze
      private_constant :HOST, :OWN, :LIMITS

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
          text = KernelFile.content(@file ||= pressure_file).to_s
          text.scan(/^(some|full) .*\btotal=(\d+)/).map do |kind, microseconds|
            ["culet_memory_pressure_seconds_total", { "kind" => kind }, microseconds.to_i / 1e6]
          end
        end

        # In a container the group's own folder is the top of the mount. The choice is kept, so an error of the moment
        # must not make it.
        def pressure_file
          path = File.exist?(OWN) ? File.read(OWN)[/^0::(.*)$/, 1].to_s : ""
          files = ["/sys/fs/cgroup#{path}/memory.pressure", "/sys/fs/cgroup/memory.pressure"]
          files.find { |file| File.file?(file) } || HOST
        end
      end
    end
  end
end
