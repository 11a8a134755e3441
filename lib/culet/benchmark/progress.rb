# frozen_string_literal: true

require_relative "../errors"

module Culet
  module Benchmark
    # The progress of a comparison: a bar with the time left on a terminal, one line per run elsewhere.
    class Progress
      # Of a terminal of unknown width; narrower than ROOMY, it shows no bar.
      USUAL_COLUMNS = 80
      ROOMY = 60
      # Minimum widths of the bar, of the time and spaces, and of the title.
      BAR_COLUMNS = 12
      FIGURES_COLUMNS = 20
      LEAST_TITLE = 8
      private_constant :USUAL_COLUMNS, :ROOMY, :BAR_COLUMNS, :FIGURES_COLUMNS, :LEAST_TITLE

      # @param out [IO]
      # @param total [Integer] number of runs
      def initialize(out:, total:)
        @out = out
        @total = total
        @done = 0
        @bar = bar if out.tty? && total.positive?
      end

      # @param scheduled [Plan::ScheduledRun] starts now
      def start(scheduled)
        return unless @bar

        @bar.title = title("#{scheduled.workload.name} #{scheduled.choice.spec}")
        @bar.refresh
      end

      # @param scheduled [Plan::ScheduledRun] is complete
      # @param metrics [Hash] of Run
      def done(scheduled, metrics)
        advance
        @out.puts(line(scheduled, metrics)) unless @bar
      end

      # @param workload [String]
      # @param allocator [String]
      # @param run [Integer, nil]
      def excluded(workload, allocator, run, exclusion)
        say("#{workload}, #{allocator}#{", run #{run}" if run}: excluded: #{exclusion.message}")
      end

      # Counts a run that is not made.
      def skip = advance

      # Prints a line above the bar.
      def puts(text) = say(text.delete_prefix("culet: "))

      # Ends the bar.
      def finish
        @bar&.stop unless @bar&.finished?
      end

      private

      def say(text) = (@bar || @out).then { |place| @bar ? place.log("culet: #{text}") : place.puts("culet: #{text}") }

      def advance
        @done += 1
        @bar&.progress = [@done, @total].min
      end

      def line(scheduled, metrics)
        format("culet: [%<done>d/%<total>d] %<workload>s, %<allocator>s, run %<run>d: peak %<peak>.1f MB, %<wall>.1f s",
               done: @done, total: @total,
               workload: scheduled.workload.name, allocator: scheduled.choice.spec, run: scheduled.run,
               peak: metrics["peak_rss_bytes"] / 1e6, wall: metrics["wall_seconds"])
      end

      # A command may have several lines, and be longer than the terminal is wide.
      def title(text)
        bar_columns = columns < ROOMY ? 0 : BAR_COLUMNS
        room = [columns - bar_columns - FIGURES_COLUMNS - (2 * @total.to_s.size), LEAST_TITLE].max
        text = text.gsub(/[[:cntrl:] ]+/, " ")
        text.size > room ? "#{text[0, room - 2]}.." : text
      end

      def columns
        require "io/console"
        (@out.winsize.last if @out.tty?).to_i.then { |columns| columns.positive? ? columns : USUAL_COLUMNS }
      end

      def bar
        require "ruby-progressbar"
        ::ProgressBar.create(total: @total, output: @out,
                             format: columns < ROOMY ? "%t  %c/%C %e" : "%t  |%B| %c/%C %e",
                             projector: { type: "smoothed", strength: 0.2 })
      rescue LoadError
        raise MissingGem.new("a progress bar", "ruby-progressbar")
      end
    end
  end
end
