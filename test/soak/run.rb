# frozen_string_literal: true

require "culet/allocators"
require "culet/benchmark/preload_check"
require "culet/system/clock"
require "culet/system/processes/memory"
require "json"
require "net/http"
require_relative "load"
require_relative "server_process"
require_relative "trend"

module Soak
  # One run of the soak's server under load on one allocator, with its memory sampled.
  class Run
    SAMPLE_SECONDS = 2
    LOAD_SECONDS = 60 # of one run of the load generator; they follow one another
    private_constant :SAMPLE_SECONDS, :LOAD_SECONDS

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
      @server = ServerProcess.new(@choice, log: log)
    end

    # @return [Result]
    # @raise [Culet::Error] where the server's gems or the load generator cannot be had, or a request failed
    def call
      @server.start
      failure = serve
      cpu = cpu_seconds
      Result.new(allocator: @choice.spec, samples: @samples, requests: @requests, cpu_seconds: cpu, failure: failure)
    ensure
      @server.stop
    end

    private

    # @return [String, nil] what went wrong
    def serve
      @server.objection || not_meant || load_it
    end

    # @return [String, nil] why this is not the allocator that is meant
    def not_meant
      preload_check = Culet::Benchmark::PreloadCheck.new(@choice)
      preload_check.examine([@server.pid])
      objection = preload_check.failure(@server.pid)
      "the server does not run on #{@choice.spec}: #{objection}" if objection
    end

    def load_it
      began = Culet::Clock.now
      sampler = Thread.new { sample(began) }
      load = Load.new(@server.target.to_s)
      while (left = @seconds - (Culet::Clock.now - began)) >= 1
        @requests += load.run([left.round, LOAD_SECONDS].min) { return "#{@server.ended} after #{(Culet::Clock.now - began).round} s" if @server.ended }
        tell(Culet::Clock.now - began)
      end
      nil
    rescue Culet::Error => e
      said = @server.diagnostic
      raise Culet::Error, "#{e.message} (the server said: #{said})" if said

      raise
    ensure
      sampler&.kill&.join
    end

    def sample(began)
      loop do
        bytes = Culet::Processes::Memory.rss_bytes(@server.pid)
        @samples << [Culet::Clock.now - began, bytes] if bytes
        sleep(SAMPLE_SECONDS)
      end
    end

    def tell(seconds)
      ruby = JSON.parse(Net::HTTP.get(URI("#{@server.target}figures")))
      @log.puts(format("soak: %<name>s, %<minutes>5.1f min, %<requests>d requests, %<mib>.1f MiB resident; Ruby: %<pages>d pages of " \
                       "objects, %<live>d live objects, %<collections>d collections",
                       name: @choice.spec, minutes: seconds / 60, requests: @requests,
                       mib: @samples.last.to_a.last.to_i / 1_048_576.0, **ruby.transform_keys(&:to_sym)))
    end

    # What the server itself has used so far, in user and in system mode; its children's are not in it.
    def cpu_seconds
      fields = File.read("/proc/#{@server.pid}/stat").rpartition(")").last.split
      fields.values_at(11, 12).sum(&:to_i) / Etc.sysconf(Etc::SC_CLK_TCK).to_f
    rescue *Culet::Processes::GONE_OR_FORBIDDEN
      nil
    end
  end
end
