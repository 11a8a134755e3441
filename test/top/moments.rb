# frozen_string_literal: true

# Moments as the sampler makes them, with figures that a test chooses.
module Moments
  MEGABYTE = 1_000_000
  FIGURES = { "levels" => {}, "malloc_used_bytes" => 30 * MEGABYTE, "malloc_free_bytes" => 2 * MEGABYTE, "live_slots" => 412_345, "free_slots" => 999,
              "minor_gcs" => 40, "major_gcs" => 4, "gc_per_minute" => 12.0, "allocated_objects" => 10**7, "trims" => 3, "trim_returned_bytes" => 5 * MEGABYTE,
              "profile" => false }.freeze
  EVENTS = [{ "at" => 1_764_000_000.0, "pid" => 102, "kind" => "fork", "text" => "puma: cluster worker 1", "bytes" => nil },
            { "at" => 1_764_000_001.0, "pid" => 101, "kind" => "trim", "text" => "trim", "bytes" => 3 * MEGABYTE },
            { "at" => 1_764_000_002.0, "pid" => 100, "kind" => "exit", "text" => "\e[31mworker", "bytes" => nil },
            { "at" => 1_764_000_002.0, "pid" => 100, "kind" => "limit", "text" => "collection", "bytes" => nil }].freeze

  private

  def process(pid, parent = 1, **changes)
    own = (pid * 1.5 * MEGABYTE).to_i
    { "pid" => pid, "parent_pid" => parent, "start_ticks" => pid, "started_at" => 1_763_999_000.0, "title" => "worker #{pid}", "ruby" => true,
      "rss_bytes" => own * 2, "pss_bytes" => own, "private_bytes" => own / 2, "shared_bytes" => own * 3 / 2, "swap_bytes" => 0, "growth_bytes" => pid - 101,
      "cpu_seconds" => 1.0, "threads" => 5, "figures" => FIGURES }.merge(changes.transform_keys(&:to_s))
  end

  def hidden(pid, parent = 1, **changes)
    unknown = %i[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes figures].to_h { |key| [key, nil] }
    process(pid, parent, **unknown, **changes)
  end

  def moment(processes, limit: nil, events: EVENTS)
    total = %w[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes].to_h { |key| [key, processes.filter_map { |one| one[key] }.sum] }
    { "at" => 1_764_000_003.5, "seconds" => 0.001, "processes" => processes, "total" => total, "limit" => limit, "events" => events }
  end

  def limit(used) = { "limit_bytes" => 1000 * MEGABYTE, "used_bytes" => used * MEGABYTE, "headroom_bytes" => (1000 - used) * MEGABYTE, "source" => "control group /app" }
end
