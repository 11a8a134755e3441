# frozen_string_literal: true

require "rbconfig"

module ProfileBench
  # CPU time of one sample: strings are allocated by methods so many frames deep, with every block sampled and without
  # the profile, in turn, in one process.
  class Samples
    DEPTHS = [20, 80].freeze
    METRIC = "CPU time of a sample"
    TIMEOUT_SECONDS = 300
    # A string of 1,000 bytes is one block. Its release counts as part of the sample.
    PROGRAM = <<~RUBY
      def deep(frames, strings) = frames.zero? ? strings.times { "x" * 1_000 } : deep(frames - 1, strings)
      def cpu(depth, strings)
        GC.start
        from = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        deep(depth, strings)
        GC.start
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - from
      end
      depth, strings, runs = ARGV.map(&:to_i)
      # Two frames of the program and the block's are on the stack too.
      depth -= 4
      runs.times do
        plain = cpu(depth, strings)
        Culet::Profile.start(sample_bytes: 1)
        sampled = cpu(depth, strings)
        Culet::Profile.stop
        puts (sampled - plain) / strings
      end
    RUBY

    # @param strings [Integer] of each run
    def initialize(strings:, runs:)
      @strings = strings
      @runs = runs
    end

    # @raise [Culet::Error] when the program fails
    def rows
      DEPTHS.map do |depth|
        Bench::Row.of(seconds(depth), factor: 1e6, subject: "Ruby stack, #{depth} deep", contender: "every block",
                                      metric: METRIC, unit: "µs")
      end
    end

    private

    def seconds(depth)
      command = [RbConfig.ruby, "-I#{Bench::ROOT}/lib", "-rculet/profile", "-e", PROGRAM, "--",
                 *[depth, @strings, @runs].map(&:to_s)]
      ended = Bench::Execution.call(Contender.new(Contender::OFF).environment, command, timeout: TIMEOUT_SECONDS)
      raise Culet::Error, "the samples of a stack failed: #{ended.failure}" unless ended.success?

      ended.out.lines.map(&:to_f)
    end
  end
end
