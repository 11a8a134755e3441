# frozen_string_literal: true

require "culet/allocators"
require "culet/compare/bundle"
require "culet/compare/child"
require "culet/compare/load_target"
require "culet/compare/witness"
require "culet/processes/memory"
require "json"
require "net/http"
require "rbconfig"
require_relative "load"
require_relative "trend"

module Soak
  # One run of the soak's server under load on one allocator, with its memory sampled.
  class Run
    SERVER = File.expand_path("server.rb", __dir__)
    GEMFILE = File.expand_path("../../workloads/rack/Gemfile", __dir__)
    SAMPLE_SECONDS = 2
    START_SECONDS = 60 # within which the server must answer
    LOAD_SECONDS = 60 # of one run of the load generator; they follow one another
    private_constant :SERVER, :GEMFILE, :SAMPLE_SECONDS, :START_SECONDS, :LOAD_SECONDS

    # samples: [seconds, bytes] each; requests: answered; failure: a sentence, nil where all went well
    Result = Struct.new(:allocator, :samples, :requests, :cpu_seconds, :failure, keyword_init: true)

    # @param allocator [String] e.g. "culet" or "glibc:arena_max=2"
    # @param minutes [Numeric] how long the load goes on
    # @param log [IO] a line per minute
    # @raise [Culet::Error] where the allocator is unknown or not there
    def initialize(allocator:, minutes:, log:)
      @choice = Culet::Allocators.parse(allocator)
      @seconds = (minutes * 60).ceil
      @log = log
      @samples = []
      @requests = 0
      @bundle = Culet::Compare::Bundle.new(name: "rack", gemfile: GEMFILE)
    end

    # @return [Result]
    # @raise [Culet::Error] where the server's gems or the load generator cannot be had, or a request failed
    def call
      @bundle.install(log: @log)
      start
      failure = serve
      cpu = cpu_seconds
      Result.new(allocator: @choice.spec, samples: @samples, requests: @requests, cpu_seconds: cpu, failure: failure)
    ensure
      @child&.stop(grace_seconds: 5)
    end

    private

    def start
      port = Culet::Compare::LoadTarget.free_port
      @target = Culet::Compare::LoadTarget.local(port)
      base = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
      environment = base.merge(@choice.environment(base, isolated: true), @bundle.environment, "PORT" => port.to_s).compact
      @child = Culet::Compare::Child.new(command: [RbConfig.ruby, "-rbundler/setup", SERVER], environment: environment)
      @witness = Culet::Compare::Witness.new(@choice)
    end

    # @return [String, nil] what went wrong
    def serve
      until @target.status == 200
        return "the server #{ending}" if @child.status
        return "the server did not answer within #{START_SECONDS} s" if @child.age_seconds > START_SECONDS

        sleep(0.1)
      end
      @witness.look([@child.pid])
      objection = @witness.objection(@child.pid)
      return "the server does not run on #{@choice.spec}: #{objection}" if objection

      load_it
    end

    def load_it
      began = now
      sampler = Thread.new { sample(began) }
      load = Load.new(@target.to_s)
      while (left = @seconds - (now - began)) >= 1
        @requests += load.run([left.round, LOAD_SECONDS].min) { return "the server #{ending} after #{(now - began).round} s" if @child.status }
        tell(now - began)
      end
      nil
    rescue Culet::Error => e
      said = @child.last_words
      raise Culet::Error, "#{e.message} (the server said: #{said})" if said

      raise
    ensure
      sampler&.kill&.join
    end

    def sample(began)
      loop do
        bytes = Culet::Processes::Memory.rss_bytes(@child.pid)
        @samples << [now - began, bytes] if bytes
        sleep(SAMPLE_SECONDS)
      end
    end

    def tell(seconds)
      ruby = JSON.parse(Net::HTTP.get(URI("#{@target}figures")))
      @log.puts(format("soak: %<name>s, %<minutes>5.1f min, %<requests>d requests, %<mib>.1f MiB resident; Ruby: %<pages>d pages of " \
                       "objects, %<live>d live objects, %<collections>d collections",
                       name: @choice.spec, minutes: seconds / 60, requests: @requests,
                       mib: @samples.last.to_a.last.to_i / 1_048_576.0, **ruby.transform_keys(&:to_sym)))
    end

    # What the server itself has used so far, in user and in system mode; its children's are not in it.
    def cpu_seconds
      fields = File.read("/proc/#{@child.pid}/stat").rpartition(")").last.split
      fields.values_at(11, 12).sum(&:to_i) / Etc.sysconf(Etc::SC_CLK_TCK).to_f
    rescue *Culet::Processes::GONE_OR_FORBIDDEN
      nil
    end

    def ending = @child.failure || "ended by itself"
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
