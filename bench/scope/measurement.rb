# frozen_string_literal: true

module ScopeBench
  # The cost of the readings of one heap.
  class Measurement
    SPEED = "heap read per CPU second while paused"
    MALLOC = %w[used_resident_bytes free_resident_bytes metadata_resident_bytes].freeze
    RUBY = %w[live_resident_bytes free_resident_bytes overhead_resident_bytes transient_resident_bytes].freeze

    # @param snapshots [Array<Culet::Scope::Snapshot>] one for each reading
    def initialize(kind, snapshots)
      @kind = kind
      @snapshots = snapshots
    end

    # @return [Array<Bench::Row>] the longest pause is that of all readings
    def rows
      names = { subject: @kind.name, contender: "culet-scope" }
      speeds = all("paused_cpu_seconds").map { |seconds| heap_bytes / seconds }
      [Bench::Row.of([heap_bytes], factor: 1e-6, metric: "heap", unit: "MB", **names),
       Bench::Row.of(speeds, factor: 1e-9, metric: SPEED, unit: "GB/s", **names),
       Bench::Row.new(median: (all("longest_pause_seconds").max * 1e3).round(3), runs: @snapshots.size,
                      metric: "longest pause", unit: "ms", **names),
       Bench::Row.of(all("p95_pause_seconds"), factor: 1e3, metric: "95th percentile of pauses", unit: "ms", **names),
       Bench::Row.of(all("cpu_seconds"), metric: "CPU time", unit: "s", **names),
       Bench::Row.of(all("peak_rss_bytes"), factor: 1e-6, metric: "reader's peak RSS", unit: "MB", **names)]
    end

    private

    def heap_bytes
      @heap_bytes ||= Culet::Statistics.median(@snapshots.map { |one| sum(one.malloc, MALLOC) + sum(one.ruby, RUBY) })
    end

    def sum(part, keys) = part ? part.to_h.values_at(*keys).sum : 0
    def all(key) = @snapshots.map { |one| one.reading.fetch(key) }
  end
end
