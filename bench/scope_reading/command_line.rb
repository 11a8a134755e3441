# frozen_string_literal: true

require "io/wait"
require "json"
require "open3"
require "optparse"
require "tmpdir"
require "culet/system/atomic_file"
require "culet/native"
require "culet/scope"
require_relative "programs"
require_relative "target"
require_relative "measurement"

# How fast and how gently the microscope reads a process: heaps of several kinds are filled, each is read several times,
# and what the reader says it took stands beside the goals.
module ScopeReading
  # bench/scope's words.
  class CommandLine
    COLUMNS = ["heap", "GB resident", "GB/s of CPU while paused", "of the copying", "GB/s by the clock", "CPU s", "pauses", "median ms", "p95 ms", "longest ms",
               "reader's peak MB", "goals"].freeze
    COPIED_MEGABYTES = 512
    # A heap needs more than its blocks; and other programs want memory too.
    ROOM = 1.5
    SPARE_MEGABYTES = 2048
    private_constant :COLUMNS, :COPIED_MEGABYTES, :ROOM, :SPARE_MEGABYTES

    # @param words [Array<String>]
    def initialize(words, out: $stdout, err: $stderr)
      @words = words
      @out = out
      @err = err
      @options = { megabytes: 2000, runs: 3 }
    end

    # @return [Integer] the exit status: 0 measured, whatever the goals; 1 failed; 2 wrong usage
    def run
      names = parser.parse(@words)
      return help if @options[:help]

      measure(kinds(names))
      0
    rescue OptionParser::ParseError, Culet::UsageError => e
      fail_with(2, e.message)
    rescue Culet::Error => e
      fail_with(1, e.message)
    rescue Interrupt
      fail_with(1, "interrupted")
    end

    private

    def help
      @out.puts parser.help
      0
    end

    def fail_with(status, message)
      @err.puts "bench/scope: #{message}"
      status
    end

    def parser
      @parser ||= OptionParser.new do |parser|
        parser.banner = "usage: bench/scope [HEAP ...] [options]"
        parser.separator "\nFills heaps, reads each several times, and prints what that took: medians, of pauses and memory the most.\n\n"
        parser.on("--megabytes N", Integer, "how large (#{@options[:megabytes]})") { |number| @options[:megabytes] = positive(number) }
        parser.on("--runs N", Integer, "readings of each (#{@options[:runs]})") { |number| @options[:runs] = positive(number) }
        parser.on("--pause-ms N", Integer, "as for culet report") { |number| @options[:pause] = positive(number) }
        parser.on("--json FILE", "write every reading's figures to FILE") { |file| @options[:json] = file }
        parser.on("-h", "--help", "this text") { @options[:help] = true }
        parser.separator "\nHeaps (all of them unless named):\n"
        Target::KINDS.each { |kind| parser.separator format("  %-12s %s", kind.name, kind.about) }
      end
    end

    def positive(number)
      raise OptionParser::InvalidArgument, "#{number}; it must be at least 1" unless number.positive?

      number
    end

    def kinds(names)
      return Target::KINDS if names.empty?

      names.map do |name|
        Target::KINDS.find { |kind| kind.name == name } || raise(Culet::UsageError, "there is no heap #{name}; `bench/scope --help` names them")
      end
    end

    def measure(kinds)
      Dir.mktmpdir("culet-bench-scope") do |folder|
        programs = Programs.new(folder)
        copied = copying(programs)
        @out.puts format("The kernel alone copies %.2f GB of another process a second.\n\n", copied / 1e9)
        @out.puts "| #{COLUMNS.join(" | ")} |", "|#{" --- |" * COLUMNS.size}"
        done = kinds.filter_map { |kind| one(kind, programs, copied) }
        write("bytes_copied_per_cpu_second" => copied.round, "megabytes" => @options[:megabytes], "heaps" => done.map(&:to_h))
      end
    end

    def write(document)
      Culet::AtomicFile.write(@options[:json], "#{JSON.pretty_generate(document)}\n") if @options[:json]
    end

    # @return [Float] bytes per second of processor time that the kernel copies when nothing is done with them
    def copying(programs)
      text, status = Open3.capture2(programs.path("copy"), COPIED_MEGABYTES.to_s)
      raise Culet::Error, "the kernel does not let one process read another" unless status.success?

      Float(text)
    end

    def one(kind, programs, copied)
      return @err.puts("bench/scope: without #{kind.name}: it needs #{needed} MB of available memory; there are #{available}") if available < needed

      measurement = Measurement.new(kind, readings(kind, programs), copied)
      @out.puts "| #{measurement.row.join(" | ")} |"
      @out.flush
      measurement
    end

    def readings(kind, programs)
      Target.new(kind, programs, @options[:megabytes]).run do |pid|
        Array.new(@options[:runs]) { Culet::Scope::Reader.new(pid, pause_milliseconds: @options[:pause]).snapshot }
      end
    end

    def needed = (@options[:megabytes] * ROOM).round + SPARE_MEGABYTES
    def available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1].to_i / 1024
  end
end
