# frozen_string_literal: true

require "culet/allocators"
require "culet/scope"
require "culet/system/clock"
require_relative "load"
require_relative "server_process"

module Soak
  # The microscope on the soak's server, again and again while it is under load: every reading must succeed, no request
  # may fail, and the server must go on. How long its answers take is measured with and without.
  class Attachments
    WARM_UP_SECONDS = 5
    private_constant :WARM_UP_SECONDS

    # failures: sentences; pauses: the longest one of each reading, in seconds; without, with: Load::Answered, with: one
    # for each stretch of the load
    Result = Struct.new(:allocator, :attachments, :failures, :pauses, :without, :with, keyword_init: true) do
      # @return [Boolean] whether all went well
      def good? = failures.empty?

      # @return [Float] seconds; the worst stretch counts
      def p99_with = with.map(&:p99_seconds).max

      # @return [Float]
      def per_second_with = with.sum(&:per_second) / with.size
    end

    # @param allocator [String] what the server runs on, e.g. "glibc"
    # @param count [Integer] how many readings
    # @param seconds [Integer] how long the load goes on without, and in each stretch with; the readings are spread over it
    # @raise [Culet::Error] where the allocator is unknown or not there
    def initialize(allocator:, count:, seconds:, log:)
      @choice = Culet::Allocators.parse(allocator)
      @count = count
      @seconds = seconds
      @server = ServerProcess.new(@choice, log: log)
      @failures = []
      @pauses = []
    end

    # @return [Result]
    # @raise [Culet::Error] where the server or the load generator cannot be had, a request failed, or the server ended
    def call
      @server.start
      objection = @server.objection
      raise Culet::Error, objection if objection

      load(WARM_UP_SECONDS, "while warming up")
      without = load(@seconds, "without attachments")
      with = attached
      Result.new(allocator: @choice.spec, attachments: @count, failures: @failures, pauses: @pauses, without: without, with: with)
    ensure
      @server.stop
    end

    private

    # @param phase [String] names the part of the run in an error: a request that fails without attachments is not the
    #   microscope's fault
    def load(seconds, phase)
      Load.new(@server.target.to_s).run(seconds) { raise Culet::Error, @server.ended if @server.ended }
    rescue Load::RequestsFailed => e
      raise Culet::Error, ["#{e.message} (#{phase})", *@server.diagnostic].join("; the server wrote: ")
    end

    # As many stretches of load as the readings take.
    def attached
      stretches = []
      reader = Thread.new { attach }
      stretches << load(@seconds, "with attachments, from number #{@pauses.size + 1} on") while stretches.empty? || reader.alive?
      reader.join
      stretches
    ensure
      reader&.kill&.join
    end

    def attach
      began = Culet::Clock.now
      @count.times do |number|
        wait = began + (number * @seconds / @count.to_f) - Culet::Clock.now
        sleep(wait) if wait.positive?
        attach_once
      end
    end

    def attach_once
      snapshot = Culet::Scope::Reader.new(@server.pid, chunks: 0).snapshot
      @pauses << snapshot.reading.fetch("longest_pause_seconds")
      @failures << "no blocks were told: #{snapshot.problems.join(" ")}" unless snapshot.malloc
    rescue Culet::Error => e
      @failures << e.message
    end
  end
end
