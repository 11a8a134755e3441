# frozen_string_literal: true

require "culet/allocators"
require "culet/tools/compare/bundle"
require "culet/benchmark/child"
require "culet/tools/compare/load_target"
require "rbconfig"

module Soak
  # The soak's server (server.rb) as a process of its own, on one allocator.
  class ServerProcess
    SERVER = File.expand_path("server.rb", __dir__)
    GEMFILE = File.expand_path("../../workloads/rack/Gemfile", __dir__)
    START_SECONDS = 60 # within which the server must answer
    GRACE_SECONDS = 5
    private_constant :SERVER, :GEMFILE, :START_SECONDS, :GRACE_SECONDS

    # @return [Culet::Compare::LoadTarget] where it answers
    attr_reader :target

    # @param log [IO] what is installed is told there
    # @param script [String]
    # @param options [Array<String>] of Ruby
    def initialize(choice, log:, script: SERVER, options: [], environment: {})
      @choice = choice
      @log = log
      @command = [RbConfig.ruby, *options, "-rbundler/setup", script]
      @environment = environment
      @bundle = Culet::Compare::Bundle.new(name: "rack", gemfile: GEMFILE)
    end

    # @raise [Culet::Error] where the server's gems cannot be had
    def start
      @bundle.install(log: @log)
      port = Culet::Compare::LoadTarget.free_port
      @target = Culet::Compare::LoadTarget.local(port)
      base = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
      environment = base.merge(@choice.environment(base, isolated: true), @bundle.environment, @environment, "PORT" => port.to_s).compact
      @child = Culet::Benchmark::Child.new(command: @command, environment: environment)
    end

    # Waits until it answers.
    #
    # @return [String, nil] why it does not, nil when it does
    def objection
      until @target.status == 200
        return ended if ended
        return "the server did not answer within #{START_SECONDS} s" if @child.age_seconds > START_SECONDS

        sleep(0.1)
      end
    end

    # @return [String, nil] how it ended; nil while it runs
    def ended = ("the server #{@child.failure || "ended by itself"}" if @child.status)

    def pid = @child.pid

    # @return [String, nil] its last complaint
    def diagnostic = @child.diagnostic

    # Ends it by SIGTERM.
    #
    # @return [Process::Status, nil] nil where it goes on
    def finish
      Process.kill(:TERM, pid)
      @child.wait(START_SECONDS)
    end

    # @param path [String] gets its error output
    def save_errors(path) = @child&.save_errors(path)

    # Ends it, and all that came from it.
    def stop = @child&.stop(grace_seconds: GRACE_SECONDS)
  end
end
