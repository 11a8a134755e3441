# frozen_string_literal: true

require "tmpdir"
require_relative "../../system/foreground"
require_relative "../../system/foreign_file"
require_relative "../../system/ruby_options"
require_relative "../allocators"
require_relative "../trace/binaries"
require_relative "stream"

module Culet
  module Profile
    # Runs a command with the profile on. Each of its processes writes a stream at its end. culet's allocator samples
    # malloc itself; in front of any other one the sampler is preloaded (trace/sampler).
    class Command
      # @return [Process::Status] of the command
      attr_reader :status

      # @return [Integer] the command's process number
      attr_reader :pid

      # @param command [Array<String>]
      # @param program [String] path of the program
      # @param sample_bytes [Integer, nil] mean distance of samples; nil: the default
      # @param choice [Allocators::Choice] the program's allocator
      def initialize(command:, program:, sample_bytes: nil, choice: Allocators.parse("culet"))
        @command = command
        @program = program
        @sample_bytes = sample_bytes
        @choice = choice
      end

      # Runs the command to its end.
      #
      # @param redirections [Hash] as for Process.spawn
      # @return [Array<Stream>] the command's own process first, then its descendants
      # @raise [Culet::Error] when the allocator is not installed, or no process wrote a stream
      # @raise [SystemCallError] when the command cannot be started
      def call(**redirections)
        Dir.mktmpdir("culet-profile") do |folder|
          foreground = Foreground.new(environment(folder), @program, @command)
          @status = foreground.call(**redirections)
          @pid = foreground.pid
          streams = read(folder)
          raise Foreground.error(nothing, @status) if streams.empty?

          streams
        end
      end

      private

      def environment(folder)
        options = ["-r#{RubyOptions.file("profile")}", ENV.fetch("RUBYOPT", nil)].compact.reject(&:empty?)
        allocator.merge("CULET_PROFILE" => (@sample_bytes || 1).to_s, "CULET_PROFILE_OUT" => File.join(folder, "%p"),
                        "RUBYOPT" => options.join(" "))
      end

      def allocator
        base = @choice.environment
        return base if culet?

        base.merge("LD_PRELOAD" => [Trace::Binaries.sampler, *base["LD_PRELOAD"]].join(":"), "CULET_INHERITED" => "0")
      end

      def culet? = @choice.name == "culet"

      def read(folder)
        pids = Dir.children(folder).grep(/\A\d+\z/).map(&:to_i)
        pids.sort_by { |pid| [pid == @pid ? 0 : 1, pid] }.map do |pid|
          Stream.new("process #{pid}", pid, ForeignFile.read(File.join(folder, pid.to_s), most_bytes: STREAM_BYTES))
        end
      end

      def nothing
        name = @command.first
        if @status.signaled?
          return "#{name} was killed by SIG#{::Signal.signame(@status.termsig)} before it wrote its profile"
        end

        library = culet? ? "did not use culet's allocator" : "could not be sampled"
        "no process wrote a profile: #{name} #{library}, or ended by exit! or exec"
      end
    end
  end
end
