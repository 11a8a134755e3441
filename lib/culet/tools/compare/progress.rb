# frozen_string_literal: true

require_relative "../../errors"

module Culet
  module Compare
    # What is under way and how long it will take: a bar on a terminal, one plain
    # line per run elsewhere.
    class Progress
      # Of a terminal that does not say how wide it is; and from how many on there is room for a bar.
      USUAL_COLUMNS = 80
      ROOMY = 60
      # What a bar takes at the least, what the time and the spaces take, and how much of a title is always shown.
      BAR_COLUMNS = 12
      FIGURES_COLUMNS = 20
      LEAST_TITLE = 8
      private_constant :USUAL_COLUMNS, :ROOMY, :BAR_COLUMNS, :FIGURES_COLUMNS, :LEAST_TITLE

      # @param out [IO] where chatter goes
      # @param total [Integer] runs in all
      def initialize(out:, total:)
        @out = out
        @total = total
        @done = 0
        @bar = bar if out.tty? && total.positive?
      end

      # @param turn [Plan::Turn] that starts now
      def start(turn)
        return unless @bar

        @bar.title = title("#{turn.workload.name} #{turn.choice.spec}")
        @bar.refresh
      end

      # @param turn [Plan::Turn] that is complete
      # @param figures [Hash] of Trial
      def done(turn, figures)
        advance
        @out.puts(line(turn, figures)) unless @bar
      end

      # @param workload [String]
      # @param allocator [String]
      # @param run [Integer, nil]
      # @param exclusion [Exclusion]
      def excluded(workload, allocator, run, exclusion)
        say("#{workload}, #{allocator}#{", run #{run}" if run}: left out: #{exclusion.message}")
      end

      # A run that is not made.
      def skip = advance

      # One line that stays.
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

      def line(turn, figures)
        format("culet: [%<done>d/%<total>d] %<workload>s, %<allocator>s, run %<run>d: peak %<peak>.1f MB, %<wall>.1f s",
               done: @done, total: @total, workload: turn.workload.name, allocator: turn.choice.spec, run: turn.run,
               peak: figures["peak_rss_bytes"] / 1e6, wall: figures["wall_seconds"])
      end

      # A command may be of several lines, and longer than the terminal.
      def title(text)
        room = [columns - (columns < ROOMY ? 0 : BAR_COLUMNS) - FIGURES_COLUMNS - (2 * @total.to_s.size), LEAST_TITLE].max
        text = text.gsub(/[[:cntrl:] ]+/, " ")
        text.size > room ? "#{text[0, room - 2]}.." : text
      end

      def columns
        require "io/console"
        (@out.winsize.last if @out.tty?).to_i.then { |columns| columns.positive? ? columns : USUAL_COLUMNS }
      end

      def bar
        require "ruby-progressbar"
        ::ProgressBar.create(total: @total, output: @out, format: columns < ROOMY ? "%t  %c/%C %e" : "%t  |%B| %c/%C %e", projector: { type: "smoothed", strength: 0.2 })
      rescue LoadError
        raise Error, "the progress bar needs the ruby-progressbar gem; install it with `gem install ruby-progressbar`"
      end
    end
  end
end
