# frozen_string_literal: true

require_relative "../../system/foreground"
require_relative "../../model/trace/files"
require_relative "../../model/trace/header"
require_relative "../../native"

module Culet
  module Trace
    # Runs a command with the recorder.
    class Recording
      # @return [Process::Status] how the command ended
      attr_reader :status

      # @param command [Array<String>]
      # @param program [String] path of the executable
      # @param destination [Files]
      # @param choice [Allocators::Choice] the program's allocator
      # @param limit_bytes [Integer, nil] maximum size of each process's file
      def initialize(command:, program:, destination:, choice:, limit_bytes: nil)
        @command = command
        @program = program
        @destination = destination
        @choice = choice
        @limit_bytes = limit_bytes
      end

      # Runs the command and packs its trace files.
      #
      # @param options [Hash] redirections, as for Process.spawn
      # @return [Array<Header>] of the files, the command's first
      # @raise [Culet::Error] when nothing was recorded
      # @raise [SystemCallError] when the command cannot be started
      def call(**options)
        environment = self.environment
        @destination.prepare
        @status = Foreground.new(environment, @program, @command).call(**options)
        headers = @destination.files.map { |file| Header.read(file) }
        raise Foreground.error(nothing, @status) if headers.empty?

        headers
      end

      private

      def environment
        base = @choice.environment
        preload = [Native.preloadable("replay", "culet-trace.so"), *base["LD_PRELOAD"]].join(":")
        base.merge("LD_PRELOAD" => preload, "CULET_TRACE_FILE" => @destination.path,
                   "CULET_TRACE_ALLOCATOR" => @choice.spec,
                   "CULET_TRACE_LIMIT" => @limit_bytes&.to_s)
      end

      def nothing
        "nothing was recorded: #{@command.first} did not call malloc, or the recorder could not be preloaded " \
          "(`culet run --allocator culet -- #{@command.first}` reports why)"
      end
    end
  end
end
