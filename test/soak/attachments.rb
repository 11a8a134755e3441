# frozen_string_literal: true

require "culet/allocators"
require "culet/scope"
require "culet/system/clock"
require_relative "load"
require_relative "server_process"

module Soak
  # The reader on the soak's server, again and again while it is under load: every reading must succeed, no request may
  # fail, and the server must go on.
  class Attachments
    WARM_UP_SECONDS = 5
    private_constant :WARM_UP_SECONDS

    # @return [Array<String>] a sentence for each reading that failed
    attr_reader :failures
    # @return [Integer] readings that succeeded
    attr_reader :readings

    # @param allocator [String] what the server runs on, e.g. "glibc"
    # @param count [Integer] how many readings
    # @param seconds [Integer] over which they are spread
    # @raise [Culet::Error] where the allocator is unknown or not there
    def initialize(allocator:, count:, seconds:)
      @count = count
      @seconds = seconds
      @server = ServerProcess.new(Culet::Allocators.parse(allocator), log: $stderr)
      @failures = []
      @readings = 0
    end

    # @return [Integer] requests that were answered meanwhile
    # @raise [Culet::Error] where the server or the load generator cannot be had, a request failed, or the server ended
    def call
      @server.start
      objection = @server.objection
      raise Culet::Error, objection if objection

      load(WARM_UP_SECONDS, "while warming up")
      attached
    ensure
      @server.stop
    end

    private

    # @param phase [String] names the part of the run in an error: a request that fails without attachments is not the
    #   reader's fault
    def load(seconds, phase)
      Load.new(@server.target.to_s).run(seconds) { raise Culet::Error, @server.ended if @server.ended }
    rescue Load::RequestsFailed => e
      raise Culet::Error, ["#{e.message} (#{phase})", *@server.diagnostic].join("; the server wrote: ")
    end

    # As many stretches of load as the readings take.
    def attached
      requests = 0
      reader = Thread.new { attach }
      requests += load(@seconds, "with attachments, from number #{@readings + 1} on") while requests.zero? || reader.alive?
      reader.join
      requests
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
      snapshot.malloc ? @readings += 1 : @failures << "no blocks were told: #{snapshot.problems.join(" ")}"
    rescue Culet::Error => e
      @failures << e.message
    end
  end
end
