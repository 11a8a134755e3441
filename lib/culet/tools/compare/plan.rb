# frozen_string_literal: true

require_relative "../allocators"
require_relative "statistics"
require_relative "workload"

module Culet
  module Compare
    # What is to be measured, and how.
    class Plan
      DEFAULT_ALLOCATORS = %w[glibc glibc:arena_max=2 jemalloc tcmalloc mimalloc culet].freeze
      DEFAULT_RUNS = 5
      DEFAULT_TIMEOUT_SECONDS = 300.0
      DEFAULT_DURATION_SECONDS = 10
      DEFAULT_CONNECTIONS = 8

      # One run to be made. run: from 1 on, within its workload; order: from 1 on, over all.
      Turn = Struct.new(:workload, :choice, :run, :order)

      attr_reader :workloads, :choices, :baseline, :runs, :seed, :timeout_seconds, :duration_seconds, :connections,
                  :scale, :command_line

      # @param workloads [Array<Workload>]
      # @param choices [Array<Allocators::Choice>]
      # @param baseline [String] the spec of the one the others are compared with
      # @param runs [Integer] of each contender on each workload
      # @param seed [Integer] of the order and of the bootstrap
      # @param timeout_seconds [Float] for one run
      # @param duration_seconds [Integer] of the load on a server
      # @param connections [Integer] of the load
      # @param scale [Float] of the built-in workloads
      # @param command_line [String] that makes the same comparison again
      def initialize(workloads:, choices:, baseline:, seed:, runs: DEFAULT_RUNS, timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
                     duration_seconds: DEFAULT_DURATION_SECONDS, connections: DEFAULT_CONNECTIONS, scale: 1.0, command_line: "culet compare")
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

      # Every contender in turns, round after round; within a round in an order drawn anew, so that neither a
      # warming machine nor a neighbour's load falls on one contender.
      #
      # @return [Array<Turn>] the same for the same seed
      def turns
        random = Random.new(seed)
        rounds = workloads.flat_map do |workload|
          (1..runs).flat_map { |run| choices.shuffle(random: random).map { |choice| [workload, choice, run] } }
        end
        rounds.each_with_index.map { |(workload, choice, run), index| Turn.new(workload, choice, run, index + 1) }
      end

      # @return [Array<String>] the text of --allocators, taken apart: commas separate allocators, but a
      #   setting (KEY=VALUE, or trim) that follows one with a setting is its next
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
