# frozen_string_literal: true

require "open3"
require_relative "../../errors"
require_relative "../../system/foreign_json"
require_relative "../../native"

module Culet
  module Replay
    # Runs culet-replay (replay/replay), a process of its own for each allocator.
    class Program
      # touch: none, page, line, all or check; paced, single: true or false.
      Options = Struct.new(:touch, :paced, :single, keyword_init: true) do
        # @return [Array<String>] for the command line of culet-replay
        def arguments
          [*("--paced" if paced), *("--single" if single), *(["--touch", touch] if touch)]
        end
      end

      # @param path [String] the trace
      def initialize(path, options: Options.new)
        @path = path
        @options = options
      end

      # Replays the trace.
      #
      # @param environment [Hash{String => String, nil}] chooses the allocator
      # @param seconds [Numeric, nil] time limit
      # @return [Hash] "trace" and "play", as culet-replay prints them
      # @raise [Culet::Error] with culet-replay's message when it fails
      def run(environment, seconds: nil) = ForeignJson.parse(execute(environment, seconds: seconds))

      # @return [Hash] what the trace contains
      # @raise [Culet::Error]
      def info = ForeignJson.parse(execute({}, "--info")).fetch("trace")

      # @return [String] every operation, one per line: index, thread, name, block, bytes, alignment
      # @raise [Culet::Error]
      def operations = execute({}, "--list")

      private

      def execute(environment, *arguments, seconds: nil)
        command = [Native.part("replay", "culet-replay"), *arguments, *@options.arguments, @path]
        Open3.popen3(environment, *command) do |input, output, errors, process|
          input.close
          readers = [output, errors].map { |io| Thread.new { io.read } }
          await(process, seconds)
          text, message = readers.map(&:value)
          raise Error, failure(process.value, message) unless process.value.success?

          text
        end
      end

      def await(process, seconds)
        return if process.join(seconds)

        raise Error, "the replay did not end within #{seconds} seconds; raise the limit with --timeout SECONDS"
      ensure
        kill(process) if process.alive?
      end

      def kill(process)
        Process.kill(:KILL, process.pid)
        process.join
      rescue Errno::ESRCH
        nil # it has just ended
      end

      def failure(status, message)
        line = message.lines.map(&:chomp).reject(&:empty?).last
        return line.delete_prefix("culet-replay: ") if line&.start_with?("culet-replay: ")

        how = "ended with status #{status.exitstatus}"
        how = "was killed by SIG#{Signal.signame(status.termsig)}" if status.signaled?
        ["the replay #{how}", *line].join(": ")
      end
    end
  end
end
