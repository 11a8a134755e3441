# frozen_string_literal: true

require_relative "command"
require_relative "command_run"
require_relative "allocator_help"

module Culet
  module CLI
    # `culet run`: replaces itself with the user's command, under an allocator.
    class Run < Command
      include CommandRun

      BANNER = "culet run [--allocator NAME[:SETTING]] -- COMMAND [ARGUMENT ...]"
      EXAMPLES = ["culet run -- bundle exec puma", "culet run --allocator jemalloc:narenas=2 -- ruby app.rb",
                  "culet run --allocator glibc:arena_max=2 -- bin/rails server",
                  "culet run --allocator glibc:trim -- bin/rails server"].freeze

      private

      # This process goes on as the command, so that whoever waits for or signals it reaches the command.
      # Descriptors that the caller handed down stay open, as with any exec.
      def execute(words, command)
        if options[:json] || options[:out]
          raise UsageError, "`culet run` writes no report; `culet env --json` prints the environment it sets"
        end

        check_command(words, command, "culet run [OPTIONS] -- COMMAND ...")
        environment = Allocators.parse(options.fetch(:allocator, "culet")).environment
        launch(command, preload: environment["LD_PRELOAD"]) do |path|
          exec(environment, [path, command.first], *command.drop(1), close_others: false)
        end
      end

      def define(parser)
        option(parser, "-a", "--allocator NAME[:SETTING]", "allocator to use (default: culet)")
        AllocatorHelp.add(parser, anywhere: anywhere?) if help_asked?
      end
    end
  end
end
