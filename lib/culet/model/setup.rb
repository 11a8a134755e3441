# frozen_string_literal: true

require_relative "../system/processes/identity"
require_relative "../system/processes/marks"
require_relative "collector_settings"

module Culet
  # The setup of a process: its allocator, the settings of its environment, and the marks that culet leaves in its
  # mappings.
  #
  # @api private
  class Setup
    # Servers that load culet in a way of their own, by the beginning of their titles.
    SERVERS = %w[puma sidekiq pitchfork].freeze
    # Allocators that culet/auto can make return memory.
    TRIMMED = %w[glibc jemalloc tcmalloc mimalloc].freeze
    private_constant :TRIMMED

    # @param snapshot [Scope::Snapshot]
    # @return [Setup]
    def self.of(snapshot)
      process = snapshot.process
      new(allocator: snapshot.allocator.name, paths: snapshot.mappings.map { |one| one.path.to_s },
          environment: snapshot.environment, names: [process.title, process.name], ruby: snapshot.ruby&.version)
    end

    # @return [String, nil] name of the allocator that serves malloc
    attr_reader :allocator

    # @param allocator [String, nil]
    # @param paths [Array<String>] of its mappings
    # @param environment [Hash{String => String}, nil] nil where it is unknown
    # @param names [Array<String, nil>] title and names
    # @param ruby [String, nil] version of its Ruby
    def initialize(allocator:, paths:, environment:, names: [], ruby: nil)
      @allocator = allocator
      @paths = paths
      @environment = environment
      @names = names.compact
      @ruby = ruby
    end

    # @return [Boolean] whether it runs on culet's allocator
    def culet? = allocator == "culet"

    # @return [Boolean] whether it could return free memory after collections, and does not
    def keeps_free_memory? = TRIMMED.include?(allocator) && trimming.nil?

    # @return [String, nil] how culet/auto trims in it, as of Processes::Marks.trimming_in
    def trimming = @paths.filter_map { |path| Processes::Marks.trimming_in(path) }.first

    # @return [Boolean] whether Culet.warmup has run in it, or in one that it was forked from
    def warmed_up? = @paths.any? { |path| path.start_with?(Processes::Marks::WARMUP) }

    # A limit that is set to nothing is none.
    #
    # @return [String, nil] the number of arenas that the environment allows glibc
    def arena_limit
      @environment.to_h["MALLOC_ARENA_MAX"].to_s[/\A[1-9]\d*\z/] ||
        @environment.to_h["GLIBC_TUNABLES"].to_s[/(?:\A|:)glibc\.malloc\.arena_max=([1-9]\d*)/, 1]
    end

    # @return [CollectorSettings] of its environment, as far as that is known
    def collector = @collector ||= CollectorSettings.new(@environment.to_h, version: @ruby)

    # @return [String, nil] one of SERVERS
    def server = SERVERS.find { |server| @names.any? { |name| name.start_with?(server) } }
  end
end
