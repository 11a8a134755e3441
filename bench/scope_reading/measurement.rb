# frozen_string_literal: true

module ScopeReading
  # What the readings of one heap took.
  class Measurement
    # Seconds a pause may take by default, and bytes the reader may have.
    PAUSE_GOAL = 0.020
    PEAK_GOAL = 100_000_000
    MALLOC = %w[used_resident_bytes free_resident_bytes metadata_resident_bytes].freeze
    RUBY = %w[live_resident_bytes free_resident_bytes overhead_resident_bytes transient_resident_bytes].freeze
    private_constant :MALLOC, :RUBY

    # @param kind [Target::Kind]
    # @param snapshots [Array<Culet::Scope::Snapshot>] one for each reading
    # @param copied [Float] bytes per second of processor time that the kernel copies at all
    def initialize(kind, snapshots, copied)
      @kind = kind
      @snapshots = snapshots
      @copied = copied
    end

    # @return [Array<String>] the cells of a row: heap, bytes, speeds, processor time, pauses, memory, goals not reached
    def row
      [@kind.name, gigabytes(heap_bytes), gigabytes(speed), format("%.0f %%", speed / @copied * 100), gigabytes(clock_speed), format("%.2f", middle("cpu_seconds")),
       most("pauses").to_i.to_s, *[middle("median_pause_seconds"), most("p95_pause_seconds"), most("longest_pause_seconds")].map { |seconds| milliseconds(seconds) },
       format("%.0f", most("peak_rss_bytes") / 1e6), missed.empty? ? "reached" : "**not**: #{missed.join(", ")}"]
    end

    # @return [Hash{String => Object}] every reading's figures
    def to_h
      { "heap" => @kind.name, "about" => @kind.about, "heap_bytes" => heap_bytes, "bytes_per_paused_cpu_second" => speed.round,
        "bytes_per_paused_second" => clock_speed.round, "goals_missed" => missed, "readings" => @snapshots.map(&:reading) }
    end

    private

    def heap_bytes
      @heap_bytes ||= median(@snapshots.map { |one| sum(one.malloc, MALLOC) + sum(one.ruby, RUBY) })
    end

    def sum(part, keys) = part ? part.to_h.values_at(*keys).sum : 0

    # Bytes of heap for each second of processor time that was used while the process was paused; by the clock.
    def speed = heap_bytes / middle("paused_cpu_seconds")
    def clock_speed = heap_bytes / middle("paused_seconds")

    def missed
      [("#{@kind.goal_gigabytes} GB/s" if @kind.goal_gigabytes && speed < @kind.goal_gigabytes * 1e9),
       ("#{milliseconds(PAUSE_GOAL)} ms" if @kind.pauses && most("longest_pause_seconds") > PAUSE_GOAL),
       ("#{PEAK_GOAL / 1_000_000} MB" if most("peak_rss_bytes") > PEAK_GOAL)].compact
    end

    def all(key) = @snapshots.map { |one| one.reading.fetch(key) }
    def middle(key) = median(all(key))
    def most(key) = all(key).max
    def median(values) = values.sort[values.size / 2]
    def gigabytes(bytes) = format("%.2f", bytes / 1e9)
    def milliseconds(seconds) = format("%.1f", seconds * 1000)
  end
end
