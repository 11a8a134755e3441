# frozen_string_literal: true

require "json"
require "open3"
require_relative "../../errors"
require_relative "../trace/tools"

module Culet
  module Replay
    # Runs culet-replay (trace/replay), which has an allocator to itself.
    class Player
      # What it is told: touch: none, page, line, all or check; paced, single: true or false; samples: about how many.
      Settings = Struct.new(:touch, :paced, :single, :samples, keyword_init: true) do
        # @return [Array<String>] as options of culet-replay
        def words
          [*("--paced" if paced), *("--single" if single), *(["--touch", touch] if touch), *(["--samples", samples.to_s] if samples)]
        end
      end

      # @param path [String] the trace
      # @param settings [Settings]
      def initialize(path, settings: Settings.new)
        @path = path
        @settings = settings
      end

      # Plays the trace.
      #
      # @param environment [Hash{String => String, nil}] chooses the allocator
      # @param seconds [Numeric, nil] how long it may take
      # @return [Hash] "trace" and "play", as culet-replay prints them
      # @raise [Culet::Error] with its sentence when it fails
      def play(environment, seconds: nil)
        JSON.parse(run(environment, *@settings.words, seconds: seconds))
      end

      # @return [Hash] what is in the trace
      # @raise [Culet::Error]
      def info = JSON.parse(run({}, "--info", *@settings.words)).fetch("trace")

      # @return [String] every operation, one to a line: index, thread, name, block, bytes, alignment
      # @raise [Culet::Error]
      def operations = run({}, "--list", *@settings.words)

      private

      def run(environment, *words, seconds: nil)
        Open3.popen3(environment, Trace::Tools.player, *words, @path) do |input, output, errors, process|
          input.close
          readers = [output, errors].map { |io| Thread.new { io.read } }
          finish(process, seconds)
          text, complaint = readers.map(&:value)
          raise Error, failure(process.value, complaint) unless process.value.success?

          text
        end
      end

      def finish(process, seconds)
        return if process.join(seconds)

        raise Error, "it did not end within #{seconds} seconds; if it only is slow, give it more by --timeout SECONDS"
      ensure
        end_now(process) if process.alive?
      end

      def end_now(process)
        Process.kill(:KILL, process.pid)
        process.join
      rescue Errno::ESRCH
        nil # it has just ended
      end

      def failure(status, complaint)
        line = complaint.lines.map(&:chomp).reject(&:empty?).last
        return line.delete_prefix("culet-replay: ") if line&.start_with?("culet-replay: ")

        how = status.signaled? ? "was ended by SIG#{Signal.signame(status.termsig)}" : "ended with status #{status.exitstatus}"
        ["the replay #{how}", *line].join(": ")
      end
    end
  end
end
