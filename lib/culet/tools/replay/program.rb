# frozen_string_literal: true

require "tempfile"
require_relative "../../errors"
require_relative "../../system/foreign_json"
require_relative "../../system/foreground"
require_relative "../../system/subprocess"
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
      # @yield several times a second; may raise to end the replay
      # @return [Hash] "trace" and "play", as culet-replay prints them
      # @raise [Culet::Error] with culet-replay's message when it fails
      def run(environment, seconds: nil, &block) = ForeignJson.parse(execute(environment, seconds: seconds, &block))

      # @return [Hash] what the trace contains
      # @raise [Culet::Error]
      def info = ForeignJson.parse(execute({}, "--info")).fetch("trace")

      # @return [String] every operation, one per line: index, thread, name, block, bytes, alignment
      # @raise [Culet::Error]
      def operations = execute({}, "--list")

      private

      # The block is called several times a second; when it raises, the replay is ended.
      def execute(environment, *arguments, seconds: nil, &block)
        command = [Native.part("replay", "culet-replay"), *arguments, *@options.arguments, @path]
        Tempfile.create("culet-replay") do |errors|
          text, status = Subprocess.run(environment, *command, seconds: seconds, err: errors, &block)
          raise Error, failure(status, File.read(errors.path), seconds) unless status&.success?

          text
        end
      end

      def failure(status, message, seconds)
        return "the replay did not end within #{seconds} seconds; raise the limit with --timeout SECONDS" unless status

        line = message.lines.map(&:chomp).reject(&:empty?).last
        return line.delete_prefix("culet-replay: ") if line&.start_with?("culet-replay: ")

        ["the replay #{Foreground.ending(status)}", *line].join(": ")
      end
    end
  end
end
