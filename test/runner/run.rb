# frozen_string_literal: true

require "etc"
require_relative "child"
require_relative "test_file"

module Runner
  # All test files, each in a process of its own: several at a time and the longest first, then one by one those that
  # must be alone. The parts are run like files. A file that fails runs once more, alone, after all others, and counts as
  # failed if it fails again. What one prints is printed whole when it ends; at the end stand the failures of all, the
  # files that passed the second time only, and the sum.
  class Run
    # More than processors, because tests wait for programs two thirds of their time. Not many more: each takes memory.
    PLACES = [(2 * Etc.nprocessors) + 2, 8].min
    # A bound against hanging. The tests that only run with --all take hours.
    LIMIT_SECONDS = ENV.key?("CULET_TEST_ALL") ? 6 * 3_600 : 1_800
    SIGNALS = %w[HUP INT TERM].freeze

    # @param paths [Array<String>] absolute paths of test files
    # @param parts [Array<Part>] what is checked besides
    # @param places [Integer] how many run at a time
    # @param limit [Numeric] seconds that a file may take
    # @param out [IO] where everything is printed
    def initialize(paths, parts: [], places: PLACES, limit: LIMIT_SECONDS, out: $stdout)
      @waiting = [*parts, *paths.map { |path| TestFile.new(path) }].sort_by { |file| [file.alone? ? 1 : 0, -file.seconds] }
      @places = places
      @limit = limit
      @out = out
      @signal = nil
      @running = {}
      @outcomes = {}
      @repeated = []
      @accounted = processor_seconds
    end

    # Runs them all. A signal that is to end this process ends first those that it started.
    #
    # @return [Boolean] whether every file ran and nothing failed
    def call
      # Handled and not raised, so that no child is started and forgotten; also where this was started to ignore them, as
      # by a shell's `&`.
      SIGNALS.each { |signal| trap(signal) { @signal = signal } }
      step until @signal || (@waiting.empty? && @running.empty?)
      return report unless @signal

      stop
      trap(@signal, "DEFAULT")
      Process.kill(@signal, Process.pid)
      sleep
    ensure
      stop
    end

    private

    # Starts what there is room for, and takes what has ended.
    def step
      start(@waiting.shift) while room?
      if (child = @running.each_value.find { |one| one.seconds > @limit })
        ended(child, child.finish, fault: "the file was not done after #{@limit} s")
      elsif (pid, status = Process.wait2(-1, Process::WNOHANG))
        ended(@running.fetch(pid), status)
      else
        sleep 0.02
      end
    end

    def room?
      return false if @waiting.empty?

      @running.empty? || (@running.size < @places && !alone?(@waiting.first))
    end

    def alone?(file) = file.alone? || @repeated.include?(file)

    def start(file)
      child = Child.new(file)
      @running[child.pid] = child
    end

    def ended(child, status, **fault)
      @running.delete(child.pid)
      file = child.file
      outcome = @outcomes[file.name] = child.outcome(status, **fault)
      print_whole("#{file.name} (#{child.seconds.round} s, #{newly_accounted.round} s of processor time)", outcome.text, outcome.fault)
      repeat(file) unless outcome.good? || @repeated.include?(file)
    ensure
      child.discard
    end

    def repeat(file)
      @repeated << file
      @waiting << file
    end

    # The kernel adds the time of a child and of the processes that it waited for when the child itself is waited for.
    #
    # @return [Float] seconds of the child that has ended last
    def newly_accounted
      before = @accounted
      @accounted = processor_seconds
      @accounted - before
    end

    # @return [Float] of the children that have ended
    def processor_seconds = Process.times.then { |times| times.cutime + times.cstime }

    # Ends what is running.
    def stop
      @running.each_value(&:tell)
      @running.each_value(&:finish)
      @running.each_value(&:discard)
      @running.clear
    end

    # Minitest prints many empty lines.
    def print_whole(heading, *texts)
      lines = texts.compact.flat_map { |text| text.lines(chomp: true) }.reject(&:empty?)
      @out.puts "# #{heading}", lines.map { |line| "  #{line}" }
      @out.flush
    end

    # @return [Boolean]
    def report
      bad = @outcomes.reject { |_, outcome| outcome.good? }
      bad.each { |name, outcome| @out.puts "", "# #{name}", outcome.complaint }
      @out.puts "" unless bad.empty?
      passed = @repeated.map(&:name) - bad.keys
      @out.puts "Failed, and passed when run again alone: #{passed.join(", ")}" if passed.any?
      @out.puts @outcomes.each_value.map(&:counts).reduce(Counts.zero, :+)
      bad.empty? && !@outcomes.empty?
    end
  end
end
