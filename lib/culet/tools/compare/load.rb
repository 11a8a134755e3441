# frozen_string_literal: true

require "open3"
require_relative "../../benchmark/exclusion"
require_relative "../../system/subprocess"

module Culet
  module Compare
    # HTTP load by wrk, as a closed loop: each connection sends its next request after the previous response.
    class Load
      SCRIPT = File.expand_path("load_report.lua", __dir__)
      # With a larger share of failed requests the result does not count; but one of at least a hundred may fail.
      TOLERATED_ERRORS = 0.001
      LEAST_REQUESTS = 100
      FIELDS = %i[requests duration p50 p99 connect read write status timeout].freeze
      private_constant :SCRIPT, :TOLERATED_ERRORS, :LEAST_REQUESTS, :FIELDS

      # requests: number of responses
      Result = Struct.new(:requests, :requests_per_second, :p50_seconds, :p99_seconds, keyword_init: true)

      # @return [String, nil] e.g. "wrk 4.1.0"; nil when it is not installed
      def self.version
        text, = Open3.capture2e("wrk", "-v")
        text[/\Awrk\s+\S*?(\d+(?:\.\d+)+)/, 1]&.then { |number| "wrk #{number}" } || "wrk"
      rescue Errno::ENOENT
        nil
      end

      # @param target [LoadTarget]
      # @param prefix [Array<String>] a command that runs wrk, such as taskset with its arguments
      def initialize(target:, seconds:, connections:, prefix: [])
        @prefix = prefix
        @target = target
        @seconds = seconds
        @connections = connections
      end

      # Runs the load; the block is called several times a second and may raise to stop it.
      #
      # @return [Result]
      # @raise [Benchmark::Exclusion] when wrk fails, or too many requests do
      def run(&block)
        output, status = Subprocess.run(*@prefix, "wrk", "-t#{[2, @connections].min}", "-c#{@connections}",
                                        "-d#{@seconds}s", "-s", SCRIPT, @target.to_s, &block)
        figures(status, output)
      rescue Errno::ENOENT
        raise Benchmark::Exclusion.new("wrk, the load generator, is not installed",
                                       remedy: "install it, on Debian by `apt-get install wrk`")
      end

      private

      def figures(status, output)
        numbers = output[/^culet ([\d ]+)$/, 1]&.split&.map(&:to_i)
        unless status.success? && numbers&.size == FIELDS.size
          raise Benchmark::Exclusion, "the load generator failed: #{output.strip.lines.last.to_s.strip}"
        end

        found = FIELDS.zip(numbers).to_h
        check(found)
        Result.new(requests: found[:requests], requests_per_second: found[:requests] / (found[:duration] / 1e6),
                   p50_seconds: found[:p50] / 1e6, p99_seconds: found[:p99] / 1e6)
      end

      def check(found)
        raise Benchmark::Exclusion, "no request was answered" if found[:requests].zero?

        failed = found.slice(:connect, :read, :write, :status, :timeout)
        single = found[:requests] >= LEAST_REQUESTS ? 1 : 0
        return if failed.values.sum <= [single, found[:requests] * TOLERATED_ERRORS].max

        kinds = failed.reject { |_, count| count.zero? }.map { |kind, count| "#{count} #{KINDS.fetch(kind)}" }
        raise Benchmark::Exclusion, "too many of #{found[:requests]} requests failed: #{kinds.join(", ")}"
      end

      KINDS = { connect: "could not connect", read: "failed reading", write: "failed writing",
                status: "got an error status", timeout: "timed out" }.freeze
      private_constant :KINDS
    end
  end
end
