# frozen_string_literal: true

require "culet/tools/compare/subprocess"
require "culet/errors"

module Soak
  # Requests to the server, by wrk: so many connections, each sending its next request when the last one is answered.
  # How fast is of no interest here, so that a busy machine may take its time over an answer.
  class Load
    CONNECTIONS = 8
    PATIENCE_SECONDS = 60 # for an answer
    UNITS = { "us" => 1e-6, "ms" => 1e-3, "s" => 1.0, "m" => 60.0 }.freeze # as wrk writes times
    private_constant :CONNECTIONS, :PATIENCE_SECONDS, :UNITS

    # A request was not answered, or not with success.
    class RequestsFailed < Culet::Error; end

    def initialize(url)
      @url = url
    end

    # requests: how many were answered; per_second: Float; p99_seconds: within this 99 % of them were answered
    Answered = Struct.new(:requests, :per_second, :p99_seconds, keyword_init: true)

    # @param seconds [Integer] how long
    # @yield called several times a second; may raise to end it
    # @return [Answered]
    # @raise [RequestsFailed]
    # @raise [Culet::Error] where there is no wrk
    def run(seconds, &block)
      text, status = Culet::Compare::Subprocess.run("wrk", "-t2", "-c#{CONNECTIONS}", "-d#{seconds}s", "--latency", "--timeout", "#{PATIENCE_SECONDS}s",
                                                    @url, &block)
      trouble = text[/^ *(Socket errors: .*|Non-2xx.*)$/, 1]
      figures = text.match(%r{^\s*99%\s+(?<p99>[\d.]+)(?<unit>us|ms|s|m)\s*$.*?(?<requests>\d+) requests in.*?^Requests/sec:\s+(?<rate>[\d.]+)}m)
      raise Culet::Error, "the load generator failed: #{text.strip.lines.last.to_s.strip}" unless status.success? && figures
      raise RequestsFailed, "requests failed: #{trouble}" if trouble

      Answered.new(requests: Integer(figures[:requests]), per_second: Float(figures[:rate]), p99_seconds: Float(figures[:p99]) * UNITS.fetch(figures[:unit]))
    rescue Errno::ENOENT
      raise Culet::Error, "there is no load generator; install the Debian package wrk, e.g. `apt-get install wrk`"
    end
  end
end
