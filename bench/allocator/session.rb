# frozen_string_literal: true

module AllocatorBench
  # Runs probes under contenders in turn.
  class Session < Bench::Session
    # Bytes for other programs, part of Probe#memory.
    SPARE_BYTES = 4 << 30

    # @param built [String] folder of the C probes
    # @param tiny [Boolean] with the smallest parameters
    # @param others [Hash] of Bench::Session
    def initialize(built:, tiny: false, **others)
      super(**others)
      @built = built
      @tiny = tiny
    end

    private

    def one(probe, contender)
      Trial.new(command: probe.command(built: @built, tiny: @tiny), contender: contender, timeout: probe.timeout).run
    end

    # Asked before every run: other programs may have taken memory since the last one.
    def obstacle(probe)
      available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1].to_i * 1024
      return if @tiny || available >= probe.memory

      format("it needs %.0f GiB of available memory, %.0f to spare included; there are %.1f",
             probe.memory / 2.0**30, SPARE_BYTES / 2.0**30, available / 2.0**30)
    end
  end
end
