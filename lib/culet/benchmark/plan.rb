# frozen_string_literal: true

require_relative "../allocators"

module Culet
  module Benchmark
    # The plan of a measurement.
    class Plan
      DEFAULT_ALLOCATORS = %w[glibc glibc:arena_max=2 jemalloc tcmalloc mimalloc culet].freeze
      DEFAULT_RUNS = 5
      DEFAULT_TIMEOUT_SECONDS = 300.0
      DEFAULT_DURATION_SECONDS = 10
      DEFAULT_CONNECTIONS = 8

      # run: number of the round, from 1 for each workload; order: from 1 over all.
      ScheduledRun = Struct.new(:workload, :choice, :run, :order)

      attr_reader :workloads, :choices, :baseline, :runs, :seed, :timeout_seconds, :duration_seconds, :connections,
                  :scale, :command_line

      # @param baseline [String] spec of the choice that the others are compared with
      # @param runs [Integer] rounds per workload
      # @param seed [Integer] of the order and the bootstrap
      # @param timeout_seconds [Float] for one run
      # @param duration_seconds [Integer] of the load on a server
      # @param connections [Integer] of the load
      # @param scale [Float] of the built-in workloads
      # @param command_line [String] repeats the comparison
      def initialize(workloads:, choices:, baseline:, seed:, runs: DEFAULT_RUNS,
                     timeout_seconds: DEFAULT_TIMEOUT_SECONDS, duration_seconds: DEFAULT_DURATION_SECONDS,
                     connections: DEFAULT_CONNECTIONS, scale: 1.0, command_line: "culet compare")
        @workloads = workloads
        @choices = choices
        @baseline = baseline
        @runs = runs
        @seed = seed
        @timeout_seconds = timeout_seconds
        @duration_seconds = duration_seconds
        @connections = connections
        @scale = scale
        @command_line = command_line
      end

      # In each round every candidate runs once, in random order, so that a slow period of the machine affects all.
      #
      # @return [Array<ScheduledRun>] the same for the same seed
      def schedule
        random = Random.new(seed)
        rounds = workloads.flat_map do |workload|
          (1..runs).flat_map { |run| choices.shuffle(random: random).map { |choice| [workload, choice, run] } }
        end
        rounds.each_with_index.map do |(workload, choice, run), index|
          ScheduledRun.new(workload, choice, run, index + 1)
        end
      end

      # @param text [String] of --allocators, such as "glibc,jemalloc:narenas=2,background_thread=true"
      # @return [Array<String>] one spec each; a setting after a comma belongs to the allocator before it
      def self.split_allocators(text)
        text.split(",").map(&:strip).reject(&:empty?).each_with_object([]) do |word, specs|
          if setting?(word) && specs.last&.include?(":") then specs.last << ",#{word}"
          else specs << +word
          end
        end
      end

      def self.setting?(word) = word.match?(/\A[a-z][\w.]*=/) || Allocators::Trim.setting?(word)
      private_class_method :setting?
    end
  end
end
