# frozen_string_literal: true

require_relative "../../system/background_thread"
require_relative "increments"

module Culet
  module Metrics
    # Sends the metrics of this process to StatsD at intervals, in a thread: `Culet::Metrics::StatsD.new(client).start`,
    # in each process. The client is that of statsd-instrument (StatsD.singleton_client), of dogstatsd-ruby, or
    # another object with `gauge`, and `count` or `increment` by a number, with tags:.
    class StatsD
      # @param client [#gauge]
      # @param interval [Numeric] seconds
      def initialize(client, interval: 10)
        unless interval.is_a?(Numeric) && interval.positive?
          raise ArgumentError, "#{interval.inspect} is not a number of seconds"
        end

        @client = client
        @interval = interval
        @increments = Increments.new
      end

      # @return [self]
      def start
        @thread = BackgroundThread.start("culet-statsd") { run }
        self
      end

      # @return [void]
      def stop = @thread&.kill&.join

      # Sends the metrics now.
      def send_figures
        Metrics.samples.each do |name, labels, value|
          tags = labels.map { |label, text| "#{label}:#{text}" }
          next @client.gauge(name, value, tags: tags) unless FAMILIES.fetch(name).type == :counter

          count(name.delete_suffix("_total"), @increments.total(name, labels, value), tags)
        end
      end

      private

      def run
        loop do
          send_figures
          sleep(@interval)
        end
      rescue StandardError => e
        warn("culet: metrics are not sent to StatsD any more: #{e.class}: #{e.message}")
      end

      # dogstatsd-ruby increments by one.
      def count(name, by, tags)
        return if by.zero?

        @client.respond_to?(:count) ? @client.count(name, by, tags: tags) : @client.increment(name, by, tags: tags)
      end
    end
  end
end
