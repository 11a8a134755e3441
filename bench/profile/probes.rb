# frozen_string_literal: true

module ProfileBench
  # Instructions of the allocator's loops in C.
  class Probes
    NAMES = %w[pair-64 pair-mixed replace-small].freeze
    METRIC = "instructions per operation"

    # @param operations [Integer] counted; enough for hundreds of samples
    # @param built [String] folder of the probes
    def initialize(operations:, built:)
      @counter = AllocatorBench::Instructions.new(built: built, amounts: { "operations" => operations })
    end

    def rows(contenders)
      probes.product(contenders).map do |probe, contender|
        Bench.progress("#{probe.name} #{contender.name}")
        Bench::Row.of([@counter.per_operation(probe, contender).round(2)],
                      subject: probe.name, contender: contender.name, metric: METRIC, unit: "")
      end
    end

    private

    def probes = AllocatorBench::Catalogue.probes.select { |probe| NAMES.include?(probe.name) }
  end
end
