# frozen_string_literal: true

require "shellwords"
require_relative "command"
require_relative "allocator_help"

module Culet
  module CLI
    # `culet env`: what `culet run` would set, for shells, Dockerfiles and process managers.
    class Env < Command
      BANNER = "culet env [--allocator NAME[:SETTING]] [--dockerfile]"
      EXAMPLES = ['eval "$(culet env)" && exec bundle exec puma', "culet env --allocator jemalloc:narenas=2",
                  "culet env --dockerfile >> Dockerfile", "culet env --json"].freeze

      private

      def execute(words, *)
        refuse_command unless words.empty?

        deliver(text(Allocators.parse(options.fetch(:allocator, "culet"))))
        EXIT_OK
      end

      def instead = "use `culet run -- COMMAND`"

      def define(parser)
        option(parser, "-a", "--allocator NAME[:SETTING]", "allocator to use (default: culet)")
        option(parser, "--dockerfile", "print ENV lines for a Dockerfile")
        AllocatorHelp.add(parser, anywhere: anywhere?) if help_asked?
      end

      def text(choice)
        # What is not set need not be unset.
        changes = choice.environment.select { |key, value| value || ENV.key?(key) }
        return JSON.generate(changes) if options[:json]

        lines = options[:dockerfile] ? docker_lines(changes) : shell_lines(changes)
        lines.empty? ? "# #{choice.spec} needs no variables\n" : lines.join("\n")
      end

      def shell_lines(changes)
        changes.map { |key, value| value ? "export #{key}=#{Shellwords.escape(value)}" : "unset #{key}" }
      end

      # In a Dockerfile's double quotes, backslash, quote and dollar are special. A variable cannot be unset there.
      def docker_lines(changes)
        changes.compact.map { |key, value| %(ENV #{key}="#{value.gsub(/["\\$]/) { |c| "\\#{c}" }}") }
      end
    end
  end
end
