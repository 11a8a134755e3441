# frozen_string_literal: true

require_relative "command"
require_relative "process_arguments"
require_relative "../tools/top"

module Culet
  module CLI
    # `culet top`: the memory of process trees, once a second.
    class Top < Command
      include ProcessArguments

      LEAST_SECONDS = 0.2
      MOST_SECONDS = 3600
      BANNER = "culet top [PID|NAME...]"
      EXAMPLES = ["culet top                   every Ruby program of this machine",
                  "culet top puma              a server by name, with its workers",
                  "culet top 4242 --every 5    every five seconds",
                  "culet top puma | cat        one table, after a second",
                  "culet top puma --json       the same as JSON"].freeze
      private_constant :LEAST_SECONDS, :MOST_SECONDS

      private

      def execute(words, *)
        roots = living_roots(words)
        sampler = Culet::Live::Sampler.new(roots)
        begin
          view? ? view(sampler, roots) : print_once(sampler, roots)
        ensure
          sampler.close
        end
      end

      def define(parser)
        paragraph(parser, "Shows the memory of processes and their children: shared memory, malloc, Ruby's slots " \
                          "and collections, the limit, and growth since the start. The key h explains columns and " \
                          "keys, q quits. Without a terminal top prints one table.")
        define_names(parser, several: true)
        decimal(parser, "--every SECONDS", "read every SECONDS seconds (default: 1; #{LEAST_SECONDS} to " \
                                           "#{MOST_SECONDS})", least: LEAST_SECONDS, most: MOST_SECONDS)
      end

      def every = options.fetch(:every, 1)

      # @return [Boolean] whether there is a terminal to show the view on
      def view?
        return false if options[:json] || options[:out] || !out.tty? || ["dumb", ""].include?(ENV["TERM"].to_s)

        require "io/console"
        !IO.console.nil?
      end

      def view(sampler, roots)
        require_relative "../tools/top/view"
        outcome = Culet::Top::View.new(sampler, console: IO.console, every: every, color: color?).call
        return EXIT_SIGNAL + ::Signal.list.fetch(outcome) if outcome.is_a?(String)

        out.puts("culet: #{ended(roots)}") if outcome == :ended
        EXIT_OK
      end

      def print_once(sampler, roots)
        moment = Culet::Top.moment(sampler, every: every) or raise Error, ended(roots)
        deliver(options[:json] ? JSON.pretty_generate(moment) : table(moment))
        EXIT_OK
      end

      def table(moment)
        columns = page_columns
        Text::Lines.within(columns) { Culet::Top::Page.new(moment, columns: columns, color: color?).to_s }
      end

      # @return [String] a sentence's end
      def ended(roots)
        return "process #{roots.first} has ended" if roots.size == 1

        "all #{roots.size} processes have ended"
      end
    end
  end
end
