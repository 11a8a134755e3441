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
    COLUMNS = ["heap", "GB resident", "GB/s of CPU while paused", "of the copying", "GB/s by the clock", "CPU s",
               "pauses", "median ms", "p95 ms", "longest ms", "reader's peak MB", "goals"].freeze
    COPIED_MEGABYTES = 512
    # A heap needs more than its blocks, and other programs need memory too.
    HEAP_FACTOR = 1.5
    SPARE_MEGABYTES = 2048
    private_constant :COLUMNS, :COPIED_MEGABYTES, :HEAP_FACTOR, :SPARE_MEGABYTES

    # @param options [Hash] of bench/scope/run
    def initialize(options) = @options = options

    # @param names [Array<String>] of heaps; none for all
    def call(names)
      kinds = Bench.chosen(Target::KINDS, names, "heap") { |kind| [kind.name] }
      Dir.mktmpdir("culet-bench-scope") do |folder|
        built = Bench::Build.call("scope", folder)
        copied = copying(built)
        puts format("The kernel alone copies %.2f GB of another process a second.\n\n", copied / 1e9)
        puts "| #{COLUMNS.join(" | ")} |", "|#{" --- |" * COLUMNS.size}"
        write(kinds.filter_map { |kind| one(kind, built, copied) }, copied)
      end
    end

    private

    def write(done, copied)
      if @options[:json]
        document = { "bytes_copied_per_cpu_second" => copied.round, "megabytes" => @options[:megabytes],
                     "heaps" => done.map(&:to_h) }
        Culet::AtomicFile.write(@options[:json], "#{JSON.pretty_generate(document)}\n")
      end
      alone = Bench::Row.of([copied], factor: 1e-9, subject: "any heap", contender: "kernel's copying alone",
                                      metric: Measurement::SPEED, unit: "GB/s")
      Bench::ResultFile.write(@options[:out], title: "Reading a process", rows: [*done.flat_map(&:rows), alone],
                                              environment: { "heap_megabytes" => @options[:megabytes] })
    end

    # @return [Float] bytes that the kernel copies in a second of CPU time
    def copying(built)
      text, status = Open3.capture2(File.join(built, "copy"), COPIED_MEGABYTES.to_s)
      raise Culet::Error, "the kernel does not let one process read another" unless status.success?

      Float(text)
    end

    def one(kind, built, copied)
      needed = (@options[:megabytes] * HEAP_FACTOR).round + SPARE_MEGABYTES
      available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1].to_i / 1024
      if available < needed
        return warn("bench/scope/run: without #{kind.name}: it needs #{needed} MB of available memory; " \
                    "there are #{available}")
      end

      measurement = Measurement.new(kind, readings(kind, built), copied)
      puts "| #{measurement.row.join(" | ")} |"
      $stdout.flush
      measurement
    end

    def readings(kind, built)
      Target.new(kind, built, @options[:megabytes]).run do |pid|
        Array.new(@options[:runs]) { Culet::Scope::Reader.new(pid, pause_milliseconds: @options[:pause_ms]).snapshot }
      end
    end
  end
end
