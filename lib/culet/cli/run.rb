# frozen_string_literal: true

require_relative "command"
require_relative "allocator_help"

module Culet
  module CLI
    # `culet run`: replaces itself with the user's command, under an allocator.
    class Run < Command
      BANNER = "culet run [--allocator NAME[:SETTING]] -- COMMAND [ARGUMENT ...]"
      EXAMPLES = ["culet run -- bundle exec puma", "culet run --allocator jemalloc:narenas=2 -- ruby app.rb",
                  "culet run --allocator glibc:arena_max=2 -- bin/rails server",
                  "culet run --allocator glibc:trim -- bin/rails server"].freeze

      private

      # @return [Integer] never, where the command can be started: this process becomes it
      def execute(words, command)
        check_usage(words, command)
        choice = Allocators.parse(options.fetch(:allocator, "culet"))
        environment = choice.environment
        program = Program.find(command.first)
        program.obstacles.each { |sentence| err.puts("culet: #{sentence}") } if environment["LD_PRELOAD"]
        become(program, command, environment)
      end

      def define(parser)
        option(parser, "-a", "--allocator NAME[:SETTING]", "allocator to use (default: culet)")
        AllocatorHelp.add(parser, anywhere: anywhere?) if help_asked?
      end

      def check_usage(words, command)
        if options[:json] || options[:out]
          raise UsageError, "`culet run` writes no report; `culet env --json` prints the environment it sets"
        end
        unless words.empty?
          raise UsageError, "#{words.first.inspect} stands before the --; write `culet run [OPTIONS] -- COMMAND ...`"
        end
        return unless command.nil? || command.empty?

        raise UsageError, "no command given; write `culet run [OPTIONS] -- COMMAND ...`"
      end

      # This process goes on as the command, so that whoever waits for or signals it reaches the command.
      # Descriptors that the caller handed down stay open, as with any exec.
      def become(program, command, environment)
        [out, err].each(&:flush)
        exec(environment, [program.path, command.first], *command.drop(1), close_others: false)
      rescue SystemCallError => e
        raise program.error(e)
      end
    end
  end
end
