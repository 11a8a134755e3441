# frozen_string_literal: true

require "culet/system/subprocess"
require "culet/errors"

module Soak
  # Requests to the server, by wrk: so many connections, each sending its next request when the last one is answered.
  # How fast is of no interest here, so that a busy machine may take its time over an answer.
  class Load
    CONNECTIONS = 8
    PATIENCE_SECONDS = 60 # for an answer
    private_constant :CONNECTIONS, :PATIENCE_SECONDS

    # A request was not answered, or not with success.
    class RequestsFailed < Culet::Error; end

    def initialize(url)
      @url = url
    end

    # @param seconds [Integer] how long
    # @yield called several times a second; may raise to end it
    # @return [Integer] requests that were answered
    # @raise [RequestsFailed]
    # @raise [Culet::Error] where there is no wrk
    def run(seconds, &block)
      text, status = Culet::Subprocess.run("wrk", "-t2", "-c#{CONNECTIONS}", "-d#{seconds}s", "--timeout", "#{PATIENCE_SECONDS}s", @url, &block)
      trouble = text[/^ *(Socket errors: .*|Non-2xx.*)$/, 1]
      requests = text[/(\d+) requests in/, 1]
      raise Culet::Error, "the load generator failed: #{text.strip.lines.last.to_s.strip}" unless status.success? && requests
      raise RequestsFailed, "requests failed: #{trouble}" if trouble

      Integer(requests)
    rescue Errno::ENOENT
      raise Culet::Error, "there is no load generator; install the Debian package wrk, e.g. `apt-get install wrk`"
    end
  end
end
