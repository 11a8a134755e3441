# frozen_string_literal: true

module ScopeBench
  # The cost of the readings of one heap.
  class Measurement
    SPEED = "heap read per CPU second while paused"
    # Seconds of a pause, and bytes of the reader.
    PAUSE_GOAL = 0.020
    PEAK_GOAL = 100_000_000
    MALLOC = %w[used_resident_bytes free_resident_bytes metadata_resident_bytes].freeze
    RUBY = %w[live_resident_bytes free_resident_bytes overhead_resident_bytes transient_resident_bytes].freeze
    private_constant :MALLOC, :RUBY

    # @param snapshots [Array<Culet::Scope::Snapshot>] one for each reading
    # @param copied [Float] bytes that the kernel copies in a second of CPU time
    def initialize(kind, snapshots, copied)
      @kind = kind
      @snapshots = snapshots
      @copied = copied
    end

    # @return [Array<String>] the cells of a row: heap, bytes, speeds, processor time, pauses, memory, goals not reached
    def row
      pauses = [middle("median_pause_seconds"), most("p95_pause_seconds"), most("longest_pause_seconds")]
      [@kind.name, gigabytes(heap_bytes), gigabytes(speed), format("%.0f %%", speed / @copied * 100),
       gigabytes(clock_speed), format("%.2f", middle("cpu_seconds")),
       most("pauses").to_i.to_s, *pauses.map { |seconds| milliseconds(seconds) },
       format("%.0f", most("peak_rss_bytes") / 1e6), missed.empty? ? "reached" : "**not**: #{missed.join(", ")}"]
    end

    # @return [Array<Bench::Row>] for --out; the longest pause is that of all readings
    def rows
      names = { subject: @kind.name, contender: "culet-scope" }
      speeds = all("paused_cpu_seconds").map { |seconds| heap_bytes / seconds }
      [Bench::Row.of(speeds, factor: 1e-9, metric: SPEED, unit: "GB/s", **names),
       Bench::Row.new(median: (most("longest_pause_seconds") * 1e3).round(3), runs: @snapshots.size,
                      metric: "longest pause", unit: "ms", **names),
       Bench::Row.of(all("p95_pause_seconds"), factor: 1e3, metric: "95th percentile of pauses", unit: "ms", **names),
       Bench::Row.of(all("cpu_seconds"), metric: "CPU time", unit: "s", **names),
       Bench::Row.of(all("peak_rss_bytes"), factor: 1e-6, metric: "reader's peak RSS", unit: "MB", **names)]
    end

    # @return [Hash{String => Object}] every reading's figures
    def to_h
      { "heap" => @kind.name, "about" => @kind.about, "heap_bytes" => heap_bytes,
        "bytes_per_paused_cpu_second" => speed.round, "bytes_per_paused_second" => clock_speed.round,
        "goals_missed" => missed, "readings" => @snapshots.map(&:reading) }
    end

    private

    def heap_bytes
      @heap_bytes ||= median(@snapshots.map { |one| sum(one.malloc, MALLOC) + sum(one.ruby, RUBY) })
    end

    def sum(part, keys) = part ? part.to_h.values_at(*keys).sum : 0

    # Bytes of heap for a second of CPU time, and of wall time, while the process is paused.
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
