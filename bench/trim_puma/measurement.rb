# frozen_string_literal: true

require "tmpdir"
require_relative "subject"

module TrimPuma
  # One workload, without and with culet/auto: both servers run at the same time, and stretches of load go to one and to
  # the other in turns, so that whatever else the machine does meets both. They are started anew several times, because
  # two starts of the same server differ as well.
  class Measurement
    METRICS = %w[requests_per_second p50_seconds p99_seconds cpu_per_request_seconds loaded_pss_bytes].freeze
    WARM_UPS = 2 # stretches that are not counted
    SEED = 5
    private_constant :WARM_UPS, :SEED

    # @param workload [String]
    # @param choice [Culet::Allocators::Choice]
    # @param pairs [Integer] stretches of load for each server, of each boot
    # @param boots [Integer] how often both are started
    # @param seconds [Integer] of one stretch
    # @param connections [Integer]
    # @param log [IO] a line for each boot
    def initialize(workload:, choice:, pairs:, boots:, seconds:, connections:, log:)
      @workload = workload
      @choice = choice
      @pairs = pairs
      @boots = boots
      @load = { seconds: seconds, connections: connections }
      @log = log
      @stretches = { false => [], true => [] }
      @rests = { false => [], true => [] }
      @trims = []
    end

    # @return [Hash] "workload", "allocator", "metrics" (name to without, with, ratio), "trims"
    def call
      Subject.workload(@workload).prepare(log: @log)
      @boots.times do |number|
        boot(number)
        @log.puts("trim-puma: #{@workload}, boot #{number + 1} of #{@boots} done")
      end
      { "workload" => @workload, "allocator" => @choice.spec, "pairs" => @stretches[true].size, "boots" => @boots, **@load.transform_keys(&:to_s),
        "metrics" => metrics, "trims" => @trims, "stretches" => { "without" => @stretches[false], "with" => @stretches[true] } }
    end

    private

    def boot(number)
      Dir.mktmpdir("culet-trim") do |directory|
        subjects = [false, true].to_h do |trimmed|
          [trimmed, Subject.new(workload: @workload, choice: @choice, trimmed: trimmed, directory: File.join(directory, trimmed.to_s))]
        end
        measure(subjects, number)
      ensure
        subjects&.each_value(&:stop)
      end
    end

    def measure(subjects, number)
      subjects.each_value(&:start)
      WARM_UPS.times { subjects.each_value { |subject| subject.load(**@load) } }
      @pairs.times do |pair|
        order = (pair + number).even? ? [false, true] : [true, false]
        order.each { |trimmed| @stretches[trimmed] << subjects[trimmed].load(**@load) }
      end
      subjects.each { |trimmed, subject| @rests[trimmed] << subject.rest }
      @trims.concat(subjects[true].stop)
    end

    def metrics
      METRICS.to_h { |name| [name, summary(name, @stretches)] }.merge("rest_pss_bytes" => summary("rest_pss_bytes", @rests))
    end

    def summary(name, values)
      statistics = Culet::Compare::Statistics.new(seed: SEED)
      without, with = [false, true].map { |trimmed| values[trimmed].map { |figures| figures.fetch(name) } }
      { "without" => statistics.summary(without), "with" => statistics.summary(with),
        "ratio" => statistics.summary(with.zip(without).map { |one, other| one.fdiv(other) }) }
    end
  end
end
