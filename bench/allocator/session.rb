# frozen_string_literal: true

module AllocatorBench
  # Runs probes under contenders in turn: each round every contender once, another one first each time, so that a slow
  # minute of the machine slows all of them.
  class Session
    # Bytes for other programs, part of Probe#memory.
    SPARE_BYTES = 4 << 30

    # @param contenders [Array<Contender>]
    # @param built [String] folder of the C probes
    # @param runs [Integer, nil] of each contender; nil for the probe's own number
    # @param tiny [Boolean] with the smallest parameters
    # @param progress [#call] receives a line before each run
    def initialize(contenders:, built:, runs: nil, tiny: false, progress: ->(_) {})
      @contenders = contenders
      @built = built
      @runs = runs
      @tiny = tiny
      @progress = progress
    end

    # @param probe [Probe]
    # @return [Result]
    def measure(probe)
      result = Result.new(probe, @contenders)
      (@runs || probe.runs).times do |round|
        @contenders.rotate(round).each do |contender|
          break if (result.skipped = lacking(probe)) # other programs may have taken memory since the last run

          result.add(contender, one(probe, contender)) unless result.out?(contender)
        end
      end
      result
    end

    private

    def one(probe, contender)
      @progress.call("#{probe.name} #{contender.name}")
      Trial.new(command: probe.command(built: @built, tiny: @tiny), contender: contender, timeout: probe.timeout).run
    end

    # @return [String, nil] why the machine's memory does not allow the probe
    def lacking(probe)
      available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1].to_i * 1024
      return if @tiny || available >= probe.memory

      format("it needs %.0f GiB of available memory, %.0f to spare included; there are %.1f",
             probe.memory / 2.0**30, SPARE_BYTES / 2.0**30, available / 2.0**30)
    end
  end
end
