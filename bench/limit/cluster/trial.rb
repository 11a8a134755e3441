# frozen_string_literal: true

require "culet/allocators"
require "culet/benchmark/child"
require "culet/tools/compare/bundle"
require "culet/tools/compare/load_target"
require_relative "load"

module Limits
  # One Puma cluster in a control group, under load for a time.
  class Trial
    # Name to limit in MiB.
    KINDS = { "leaking" => 300, "bursting" => 110, "native" => 110, "forking" => 80 }.freeze
    # Name to allocator and what restarts workers.
    CONTENDERS = { "culet/limit" => %w[culet culet],
                   "puma_worker_killer on jemalloc" => %w[jemalloc worker_killer] }.freeze
    START_SECONDS = 60
    Outcome = Struct.new(:kills, :failed, :restarts, :rate, :answered, :longest, :peak, :first_failure,
                         keyword_init: true)

    def self.bundle
      @bundle ||= Culet::Compare::Bundle.new(name: "limit-clusters", gemfile: File.expand_path("Gemfile", __dir__))
    end

    # @param kind [String]
    # @param contender [String]
    # @param bytes [Integer] the limit
    # @param interval [Integer] seconds between restarts
    def initialize(kind:, contender:, bytes:, seconds:, interval:)
      @kind = kind
      @allocator, @killer = CONTENDERS.fetch(contender)
      @bytes = bytes
      @seconds = seconds
      @interval = interval
    end

    # @return [Outcome]
    # @raise [Culet::Error] when the cluster does not start
    def call
      Group.with(@bytes) do |group|
        @port = Culet::Compare::LoadTarget.free_port
        Dir.mktmpdir { |folder| run(group, File.join(folder, "log")) }
      end
    end

    private

    def run(group, log)
      puma = ["puma", "-C", path("puma.rb"), path("application.ru")]
      child = Culet::Benchmark::Child.new(command: group.command(RbConfig.ruby, "-S", "bundle", "exec", *puma),
                                          environment: environment, out: log)
      target = Culet::Compare::LoadTarget.parse("http://127.0.0.1:#{@port}/1")
      Bench.await_server(child, START_SECONDS) { target.status == 200 }
      load = Load.new(@port, group).run(@seconds)
      Outcome.new(**load.figures, kills: group.kills, restarts: restarts(File.read(log), group.kills))
    ensure
      child&.stop(grace_seconds: START_SECONDS)
    end

    # Workers that were started, but for the first two, and those that replaced killed ones.
    def restarts(log, kills)
      started = log.scan(/Worker \d+ \(PID: \d+\) booted/).size
      [started - 2 - kills, 0].max
    end

    def path(name) = File.expand_path(name, __dir__)

    def environment
      base = ENV.to_h
      allocator = Culet::Allocators.parse(@allocator)
      raise Culet::Error, "there is no #{@allocator}: install #{allocator.package}" unless allocator.available?

      base.merge(self.class.bundle.environment, allocator.environment(base, isolated: true),
                 "RUBYLIB" => "#{Bench::ROOT}/lib", "PORT" => @port.to_s, "KIND" => @kind, "CONTENDER" => @killer,
                 "LIMIT" => @bytes.to_s, "INTERVAL" => @interval.to_s, "RUBYOPT" => nil, "WEB_CONCURRENCY" => nil,
                 "CULET_TRIM" => nil, "CULET_LIMIT" => nil).compact
    end
  end
end
