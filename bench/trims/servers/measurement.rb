# frozen_string_literal: true

require "tmpdir"
require_relative "server"

module Servers
  # One workload, without and with culet/auto. Both servers share one processor, so that other work on the machine
  # slows both alike; with a processor each, the CPU time of a request varied by a ninth between stretches, shared by a
  # fiftieth. Load and servers swap their processors after each stretch. Two starts of one server differ too: both are
  # started several times, and each start gives one ratio, the median of its rounds.
  class Measurement
    METRICS = %w[requests_per_second p50_seconds p99_seconds cpu_per_request_seconds loaded_pss_bytes].freeze
    WARM_UPS = 1 # stretches that are not counted
    SEED = 5

    # @param workload [String]
    # @param rounds [Integer] of each boot
    # @param boots [Integer] how often both are started
    # @param seconds [Integer] of one stretch
    # @param connections [Integer]
    def initialize(workload:, choice:, rounds:, boots:, seconds:, connections:)
      @workload = workload
      @choice = choice
      @rounds = rounds
      @boots = boots
      @load = { seconds: seconds, connections: connections }
      @stretches = { false => [], true => [] }
      @rests = { false => [], true => [] }
      @trims = []
    end

    # @return [Hash] "workload", "allocator", "metrics" (name to without, with, ratio), "trims"
    def call
      Server.workload(@workload).prepare(log: $stderr)
      @boots.times do |number|
        boot(number)
        Bench.progress("#{@workload}, boot #{number + 1} of #{@boots} done")
      end
      { "workload" => @workload, "allocator" => @choice.spec, "rounds" => @rounds * @boots, "boots" => @boots,
        **@load.transform_keys(&:to_s), "metrics" => metrics, "trims" => @trims,
        "stretches" => { "without" => @stretches[false], "with" => @stretches[true] } }
    end

    private

    def boot(number)
      Dir.mktmpdir("culet-trim") do |directory|
        subjects = [false, true].to_h do |trimmed|
          [trimmed, Server.new(workload: @workload, choice: @choice, trimmed: trimmed,
                               directory: File.join(directory, trimmed.to_s))]
        end
        measure(subjects, number)
      ensure
        subjects&.each_value(&:stop)
      end
    end

    def measure(subjects, number)
      subjects.each_value(&:start)
      processors = Affinity.two.rotate(number)
      WARM_UPS.times { stretch(subjects, processors) }
      (2 * @rounds).times do |count|
        stretch(subjects.to_a.rotate(count / 2).to_h, processors.rotate(count)).each do |trimmed, figures|
          @stretches[trimmed] << figures
        end
      end
      subjects.each { |trimmed, subject| @rests[trimmed] << subject.rest }
      @trims.concat(subjects[true].stop)
    end

    def stretch(subjects, processors)
      loads = subjects.transform_values do |subject|
        Thread.new { subject.load(processors: processors, **@load) }.tap { |thread| thread.report_on_exception = false }
      end
      loads.transform_values(&:value)
    end

    def metrics
      METRICS.to_h { |name| [name, summary(name, @stretches)] }
             .merge("rest_pss_bytes" => summary("rest_pss_bytes", @rests))
    end

    def summary(name, values)
      statistics = Culet::Statistics.new(seed: SEED)
      without, with = [false, true].map { |trimmed| values[trimmed].map { |figures| figures.fetch(name) } }
      ratios = with.zip(without).map { |one, other| one.fdiv(other) }
                   .each_slice(with.size / @boots).map { |boot| ratio(boot) }
      { "without" => statistics.summary(without), "with" => statistics.summary(with),
        "ratio" => statistics.summary(ratios) }
    end

    # ratios: of one start's stretches, or what it had at rest
    def ratio(ratios)
      Culet::Statistics.median(ratios.each_slice(2).map { |round| round.reduce(:*)**(1.0 / round.size) })
    end
  end
end
