# frozen_string_literal: true

require "tmpdir"
require_relative "../../errors"
require_relative "../../system/foreground"
require_relative "ends"
require_relative "../../text/numbers"

module Culet
  module Agent
    # Runs a command and looks at its Ruby process at its end.
    class Command
      # @return [Process::Status] of the command
      attr_reader :status

      # @param command [Array<String>]
      # @param program [String] path of the program
      # @param notes [#puts] gets a line for what went wrong with one of several processes
      # @param environment [Hash{String => String}] more variables of the command
      # @param redirections [Hash] as for Process.spawn
      # @yieldparam pid [Integer] of a process that waits for the look
      # @yieldreturn [#total_bytes] what was found
      def initialize(command:, program:, notes:, environment: {}, redirections: {}, &look)
        @command = command
        @program = program
        @notes = notes
        @environment = environment
        @redirections = redirections
        @look = look
        @found = {}
      end

      # @return [#total_bytes] of the command's own process, or of the largest
      # @raise [SystemCallError] when the command cannot be started
      # @raise [Culet::Error] when none of its processes could be looked at
      def call
        Dir.mktmpdir("culet-command") { |folder| run(File.join(folder, "socket")) }
        raise Foreground.error(@problem || nothing, status) if @found.empty?

        found = @found[@pid] || @found.values.max_by(&:total_bytes)
        others = @found.size - 1
        more = Text::Numbers.count(others, "more Ruby process", "more Ruby processes")
        @notes.puts("culet: #{more} of the command ended; the report covers one") if others.positive?
        found
      end

      private

      def run(path)
        ends = Ends.new(path)
        environment = ends.environment(ENV.fetch("RUBYOPT", nil)).merge(@environment)
        foreground = Foreground.new(environment, @program, @command)
        serving(ends, foreground) { @status = foreground.call(**@redirections) }
        @pid = foreground.pid
      end

      # Looks at the processes that connect, until the block ends. Once the command's own process has been looked at,
      # the others need not wait.
      def serving(ends, foreground)
        ends.start { |pid| take(pid) unless @found.key?(foreground.pid) }
        yield
      ensure
        ends.stop
      end

      def take(pid)
        @found[pid] = @look.call(pid)
      rescue Error => e
        @problem = e.message
      end

      def nothing
        if @status.signaled?
          return "#{@command.first} was killed by SIG#{::Signal.signame(@status.termsig)} before culet could look at it"
        end

        "no Ruby process could be looked at: #{@command.first} ran none, or none that loads culet, or it ended by " \
          "exit!"
      end
    end
  end
end
