# frozen_string_literal: true

# Common parts of the Ruby probes. Requires nothing, since all that is loaded is measured.
module Probe
  module_function

  # @param defaults [Hash{Symbol => Integer}]
  # @return [Hash{Symbol => Integer}] with what the command line's NAME=NUMBER words say
  def parameters(defaults)
    ARGV.each_with_object(defaults.dup) do |word, known|
      name, number = word.split("=", 2)
      unless known.key?(name.to_sym) && number.to_s.match?(/\A\d+\z/)
        warn "probe: #{word} is no NAME=NUMBER of this probe; it takes #{defaults.keys.join(", ")}"
        exit 2
      end
      known[name.to_sym] = number.to_i
    end
  end

  # @param key [String] of /proc/self/smaps_rollup, e.g. "Private_Dirty"
  def smaps_bytes(key) = File.read("/proc/self/smaps_rollup")[/^#{key}:\s+(\d+) kB/, 1].to_i * 1024

  def peak_rss_bytes = File.read("/proc/self/status")[/^VmHWM:\s+(\d+) kB/, 1].to_i * 1024

  # @return [Array(Float, Float)] seconds by the clock and of CPU since the machine's and the process's start
  def clocks
    [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |clock| Process.clock_gettime(clock) }
  end

  # Prints the line of JSON. `malloc` is the preloaded library, or libc.
  #
  # @param figures [Hash{Symbol => Numeric}]
  def report(name, figures)
    maps = File.read("/proc/self/maps")
    preloaded = ENV["LD_PRELOAD"].to_s.split(/[ :]/).find { |file| maps.include?(File.realpath(file)) }
    malloc = preloaded || maps[%r{ (/\S*/libc[.-]\S*)$}, 1]
    text = figures.map { |key, value| "#{key.to_s.inspect}:#{value}" }.join(",")
    puts "{\"probe\":#{name.inspect},\"malloc\":#{malloc.inspect},\"figures\":{#{text}}}"
  end
end
