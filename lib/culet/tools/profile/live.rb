# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../system/ruby_options"
require_relative "../../allocators/inspected_process"
require_relative "../../model/profile/inquiry"

module Culet
  module Profile
    # The profile of a running process, by its agent, from its start to its stop.
    class Live < Inquiry
      # @return [Integer] process number
      attr_reader :pid

      # @param pid [Integer, String] a process number
      # @param wait_seconds [Float] longest wait for the process to answer
      # @raise [Culet::Error] when there is no such process, or it may not be read
      def initialize(pid, wait_seconds: WAIT_SECONDS)
        process = Processes::Live.find(pid)
        @pid = process.pid
        @target = Allocators::InspectedProcess.new(process)
        @started = false
        super(pid, wait_seconds: wait_seconds, absence: method(:absence))
      end

      # @return [String] e.g. "process 4242 (puma: cluster worker 0: 4240 [shop])"; once it has ended, the last one
      def name
        identity = Processes::Identity.new(pid)
        @name = "process #{pid} (#{identity.title})" unless identity.command_line.empty?
        @name || "process #{pid}"
      end

      # @return [Boolean] whether the profile was started here, and is to be stopped here
      def started? = @started

      # Starts the profile, unless it is on.
      #
      # @param sample_bytes [Integer, nil] the mean distance of samples; nil: the default of the process
      # @return [Boolean] true: it is on
      # @raise [Culet::Error] without an agent, or when it does not answer
      def start(sample_bytes)
        return true if running?

        request("start", sample_bytes)
        @started = true
      end

      # Notes that the process has the profile from its parent.
      #
      # @param started [Boolean] whether the profile of the parent was started here
      # @return [Boolean] true: it is on
      def inherit(started)
        @started = started
        true
      end

      # Stops the profile if it was started here.
      #
      # @raise [Culet::Error]
      def stop
        return unless @started

        request("stop")
        @started = false
      end

      # Notes that the program has booted: growth is what it allocates from now on.
      #
      # @raise [Culet::Error]
      def booted = request("booted")

      # Runs as many major collections as growth has survived. The process stops for that long.
      #
      # @raise [Culet::Error]
      def collect = request("collect")

      # @return [String, nil] why the profile lacks what malloc returns; known after `running?`
      def note
        return unless status.to_s.match?(/\bmalloc=0\b/)

        "process #{pid} does not run on culet's allocator, so its profile has Ruby objects alone; " \
          "start it with `culet run -- COMMAND`"
      end

      private

      def absence
        allocator = @target.allocator == "culet"
        if @target.ruby?
          "process #{pid} has no agent#{" and does not run on culet's allocator" unless allocator}; start it with " \
            "#{RubyOptions.advice("profile")}#{" culet run -- COMMAND" unless allocator}"
        else
          "process #{pid} is not a Ruby program and has no agent; start it with `culet profile -- COMMAND`"
        end
      end
    end
  end
end
