# frozen_string_literal: true

require "io/wait"
require "open3"
require "tmpdir"
require "culet/native"
require "culet/scope"
require_relative "target"
require_relative "measurement"

# Speed, pauses and memory of culet-scope on heaps of several kinds.
module ScopeBench
  # All heaps of one command line.
  class Session
    COPIED_MEGABYTES = 512
    # A heap needs more than its blocks, and other programs need memory too.
    HEAP_FACTOR = 1.5
    SPARE_MEGABYTES = 2048

    # @param options [Hash] of bench/scope/run
    def initialize(options) = @options = options

    # @param names [Array<String>] of heaps; none for all
    def call(names)
      kinds = Bench.chosen(Target::KINDS, names, "heap") { |kind| [kind.name] }
      Dir.mktmpdir("culet-bench-scope") do |folder|
        built = Bench::Build.call("scope", folder)
        alone = Bench::Row.of([copying(built)], factor: 1e-9, subject: "any heap", contender: "kernel's copying alone",
                                                metric: Measurement::SPEED, unit: "GB/s")
        Bench.publish([*kinds.flat_map { |kind| rows(kind, built) }, alone], title: "Reading a process",
                      out: @options[:out], environment: { "heap_megabytes" => @options[:megabytes] })
      end
    end

    private

    # @return [Float] bytes that the kernel copies in a second of CPU time
    def copying(built)
      text, status = Open3.capture2(File.join(built, "copy"), COPIED_MEGABYTES.to_s)
      raise Culet::Error, "the kernel does not let one process read another" unless status.success?

      Float(text)
    end

    def rows(kind, built)
      needed = (@options[:megabytes] * HEAP_FACTOR).round + SPARE_MEGABYTES
      available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1].to_i / 1024
      if available < needed
        Bench.progress("without #{kind.name}: it needs #{needed} MB of available memory; there are #{available}")
        return []
      end

      Bench.progress(kind.name)
      Measurement.new(kind, readings(kind, built)).rows
    end

    def readings(kind, built)
      Target.new(kind, built, @options[:megabytes]).run do |pid|
        Array.new(@options[:runs]) { Culet::Scope::Reader.new(pid, pause_milliseconds: @options[:pause_ms]).snapshot }
      end
    end
  end
end
