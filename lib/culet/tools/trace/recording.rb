# frozen_string_literal: true

require_relative "../../system/foreground"
require_relative "destination"
require_relative "packing"
require_relative "stage"
require_relative "tools"

module Culet
  module Trace
    # A command run under the recorder.
    class Recording
      # @return [Process::Status] how the command ended
      attr_reader :status

      # @return [Array<String>] one sentence for each file that is left as it was recorded
      attr_reader :complaints

      # @param command [Array<String>]
      # @param program [String] path of its first word
      # @param destination [Destination]
      # @param choice [Allocators::Choice] the allocator that serves the program
      # @param limit_bytes [Integer, nil] how large each process's file may grow
      def initialize(command:, program:, destination:, choice:, limit_bytes: nil)
        @command = command
        @program = program
        @destination = destination
        @choice = choice
        @limit_bytes = limit_bytes
        @complaints = []
      end

      # Runs the command to its end and packs what was recorded.
      #
      # @param options [Hash] redirections, as for Process.spawn
      # @return [Array<Header>] of the files, the command's own first
      # @raise [Culet::Error] when nothing was recorded
      # @raise [SystemCallError] when the command cannot be started
      def call(**options)
        environment = self.environment
        @destination.prepare
        @status = Stage.open(@destination.path) do |stage|
          Foreground.new(environment.merge("CULET_TRACE_STAGE" => stage&.name), @program, @command).call(**options)
        end
        headers = @destination.files.map { |file| pack(file) }
        raise Foreground.error(nothing, @status) if headers.empty?

        headers
      end

      private

      def environment
        base = @choice.environment
        preload = [recorder, *base["LD_PRELOAD"]].join(":")
        base.merge("LD_PRELOAD" => preload, "CULET_TRACE_FILE" => @destination.path, "CULET_TRACE_ALLOCATOR" => @choice.spec,
                   "CULET_TRACE_LIMIT" => @limit_bytes&.to_s)
      end

      def recorder
        path = Tools.recorder
        return path unless path.match?(/[\s:]/)

        raise Error, "#{path} cannot be preloaded, because the loader takes spaces and colons in LD_PRELOAD as separators; " \
                     "put it where the path has none"
      end

      def pack(file)
        Packing.new(file).call
        Header.read(file)
      rescue Error => e
        complaints << e.message
        Header.read(file)
      end

      def nothing
        "nothing was recorded: #{@command.first} asked this machine's malloc for nothing, or the recorder could not be " \
          "preloaded into it (`culet run --allocator culet -- #{@command.first}` says why)"
      end
    end
  end
end
