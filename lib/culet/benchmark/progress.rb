# frozen_string_literal: true

module Culet
  module Benchmark
    # The progress of a comparison, one line per run.
    class Progress
      # @param out [IO]
      # @param total [Integer] number of runs
      def initialize(out:, total:)
        @out = out
        @total = total
        @done = 0
      end

      # @param scheduled [Plan::ScheduledRun] is complete
      # @param metrics [Hash] of Run
      def done(scheduled, metrics)
        skip
        @out.puts(one_line(line(scheduled, metrics)))
      end

      # @param workload [String]
      # @param allocator [String]
      # @param run [Integer, nil]
      def excluded(workload, allocator, run, exclusion)
        puts(one_line("#{workload}, #{allocator}#{", run #{run}" if run}: excluded: #{exclusion.message}"))
      end

      # Counts a run that is not made.
      def skip = @done += 1

      # @param text [String] a line, with or without the program's name
      def puts(text) = @out.puts("culet: #{text.delete_prefix("culet: ")}")

      private

      # A command, which names its workload, may have several lines.
      def one_line(text) = text.gsub(/[[:cntrl:] ]+/, " ")

      def line(scheduled, metrics)
        format("culet: [%<done>d/%<total>d] %<workload>s, %<allocator>s, run %<run>d: peak %<peak>.1f MB, %<wall>.1f s",
               done: @done, total: @total,
               workload: scheduled.workload.name, allocator: scheduled.choice.spec, run: scheduled.run,
               peak: metrics["peak_rss_bytes"] / 1e6, wall: metrics["wall_seconds"])
      end
    end
  end
end
