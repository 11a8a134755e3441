# frozen_string_literal: true

require "tmpdir"
require_relative "../../../lib/culet/native"
require_relative "../../../lib/culet/system/foreground"
require_relative "../../../lib/culet/system/foreign_file"
require_relative "../../../lib/culet/system/ruby_options"
require_relative "log"

module Culet
  module Boot
    # Runs a command with the recorder.
    class Run
      RECORDER = File.expand_path("../recorder.rb", __dir__)
      private_constant :RECORDER

      # @return [Process::Status] of the command
      attr_reader :status

      # @return [Integer] the command's process number
      attr_reader :pid

      # @return [Hash{Integer => String}] Ruby processes without a recording, and the reason
      attr_reader :unrecorded

      # @param command [Array<String>]
      # @param program [String] path of the program
      # @param follow [Boolean] whether to count retained objects
      def initialize(command:, program:, follow: true)
        @command = command
        @program = program
        @follow = follow
      end

      # Runs the command to its end and reads the recordings of all its processes.
      #
      # @param options [Hash] redirections, as for Process.spawn
      # @return [Array<Log>] one for each Ruby process
      # @raise [Culet::Error] without any recording
      # @raise [SystemCallError] when the command cannot be started
      def call(**options)
        Dir.mktmpdir("culet-require") do |folder|
          foreground = Foreground.new(environment(folder), @program, @command)
          @status = foreground.call(**options)
          @pid = foreground.pid
          @unrecorded = Dir[File.join(folder, "*.unrecorded")].to_h do |path|
            [File.basename(path).to_i, ForeignFile.read(path).force_encoding(Encoding::UTF_8).scrub]
          end
          logs = Dir[File.join(folder, "*.jsonl")].sort_by { |path| path.b.scan(/\d+/).last(2).map(&:to_i) }
                                                  .map { |path| Log.read(path) }
          raise Foreground.error(nothing, @status) if logs.empty?

          logs
        end
      end

      private

      def environment(folder)
        { "CULET_REQUIRES" => folder, "CULET_REQUIRES_FOLLOW" => @follow ? "1" : "0",
          "CULET_REQUIRES_ABI" => "#{RUBY_ENGINE} #{RUBY_VERSION} #{RUBY_PLATFORM}",
          "RUBYOPT" => first("-r#{RubyOptions.loadable(RECORDER, "the recorder of requires")}", "RUBYOPT", " "),
          "LD_PRELOAD" => first(counter, "LD_PRELOAD", ":") }
      end

      def counter = Native.preloadable("boot/syscall_counter", "culet-syscall-counter.so")

      # @return [String] the word in front of those that the variable has
      def first(word, variable, separator) = [word, *ENV.fetch(variable, nil)].reject(&:empty?).join(separator)

      def nothing
        return "nothing was recorded: #{unrecorded.values.first}" if unrecorded.any?

        "nothing was recorded: #{@command.first} ran no Ruby program that loads culet; the command must start " \
          "the Ruby that runs culet, and keep its environment"
      end
    end
  end
end
