# frozen_string_literal: true

require_relative "../errors"
require_relative "../system/foreground"
require_relative "program"

module Culet
  module CLI
    # Shared by the verbs that run a command.
    module CommandRun
      private

      # @param words [Array<String>] before the --
      # @param command [Array<String>, nil] after it
      # @param ways [String] how to name a process: "`culet profile PID`"
      # @raise [UsageError] unless there is a process or a command
      def check_subject(words, command, ways)
        raise UsageError, "give a process or a command, not both" if command && words.any?
        raise UsageError, "no command given; write it after --, e.g. `culet #{verb} -- ruby job.rb`" if command == []
        return if command || words.any?

        raise UsageError, "no process given; write #{ways} or `culet #{verb} -- COMMAND`"
      end

      # @param usage [String] of the verb
      # @raise [UsageError] unless there is a command, and nothing before it
      def check_command(words, command, usage)
        raise UsageError, "#{words.first.inspect} stands before the --; write `#{usage}`" if words.any?
        raise UsageError, "no command given; write `#{usage}`" if command.nil? || command.empty?
      end

      # Starts or runs the command.
      #
      # @param preload [Boolean] whether it is to use a preloaded library
      # @yieldparam path [String] of the program
      # @return [Object] the block's value
      # @raise [Culet::Error] when it cannot be started
      def launch(command, preload: true)
        program = Program.find(command.first)
        program.obstacles.each { |sentence| err.puts("culet: #{sentence}") } if preload
        [out, err].each(&:flush)
        yield program.path
      rescue SystemCallError => e
        raise program.error(e)
      end

      # Where the report is JSON, stdout is one document: the command's own output goes to stderr.
      def redirections = options[:json] && !options[:out] ? { out: :err } : {}

      # Notes how the command ended, if it failed.
      #
      # @return [Integer] its exit status, as in a shell
      def ended(status)
        err.puts("culet: the command #{Foreground.ending(status)}") unless status.success?
        Foreground.exit_status(status)
      end
    end
  end
end
