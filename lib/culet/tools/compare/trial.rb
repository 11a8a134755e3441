# frozen_string_literal: true

require "tmpdir"
require_relative "child"
require_relative "exclusion"
require_relative "load"
require_relative "load_target"
require_relative "sampler"
require_relative "witness"

module Culet
  module Compare
    # One run of one workload under one allocator: starts it, watches it, loads it
    # if it is a server, ends it, and sees to it that nothing of it is left.
    class Trial
      POLL_SECONDS = 0.05
      # A server that was asked to end first finishes its requests and collects its workers.
      GRACE_SECONDS = 10
      START_SECONDS = 120
      # Between the end of the load and the look at what is left, as long as a built-in program rests.
      REST_SECONDS = 1.0
      POLL_START_SECONDS = 0.02
      SIGTERM = Signal.list.fetch("TERM")
      private_constant :POLL_SECONDS, :GRACE_SECONDS, :START_SECONDS, :REST_SECONDS, :POLL_START_SECONDS, :SIGTERM

      # @param workload [Workload]
      # @param choice [Allocators::Choice]
      # @param plan [Plan] for the timeout and the load
      # @param interruption [Interruption]
      def initialize(workload:, choice:, plan:, interruption:)
        @workload = workload
        @choice = choice
        @plan = plan
        @interruption = interruption
      end

      # @return [Hash] an element of the result document's "runs", without "run" and "order"
      # @raise [Exclusion] when it is no result
      # @raise [Interrupted] when the user asked to stop
      # @raise [Culet::Error] when the program cannot be started at all
      def call
        return measure(nil, nil) unless @workload.server? || @workload.built_in?

        Dir.mktmpdir("culet-compare") { |directory| measure((LoadTarget.free_port if @workload.server?), directory) }
      end

      private

      def measure(port, directory)
        target = @workload.target(port) if @workload.server?
        refuse_taken(target) if target
        environment = @workload.environment(@choice, port: port, directory: directory)
        @directory = directory
        # A built-in server runs in its scratch directory, so that it does not take a configuration of the user's.
        @child = Child.new(command: @workload.command, environment: environment,
                           directory: @workload.built_in? && target ? directory : Dir.pwd)
        watched { target ? serve(target) : await_end }
      end

      # A server that already listens there would be loaded in place of the measured one.
      def refuse_taken(target)
        return unless target.answers?

        raise Error, "something answers at #{target} already; stop it first, or give the address of your command"
      end

      # Samples while the block works. Whatever happens, no process is left.
      def watched
        witness = Witness.new(@choice)
        sampler = Sampler.new(descendants: @child.descendants, witness: witness).start
        load = yield
        rest = @child.stop(grace_seconds: load ? GRACE_SECONDS : 0) { @interruption.requested? }
        @interruption.check
        series = sampler.stop(done_at: done_at)
        check_end(load)
        check_witness(witness, series)
        figures(series, load, rest)
      ensure
        @child.stop(grace_seconds: 0)
        sampler&.stop unless series
      end

      def await_end
        step until @child.wait(POLL_SECONDS)
        nil
      end

      # Also while a server is loaded: between two looks.
      def step
        @interruption.check
        return if @child.age_seconds <= @plan.timeout_seconds

        raise Exclusion.new("it did not end within #{@plan.timeout_seconds} seconds",
                            remedy: "if it only is slow, give it more by --timeout SECONDS")
      end

      def serve(target)
        await_answer(target)
        before = tree_cpu
        load = Load.new(target: target, seconds: @plan.duration_seconds, connections: @plan.connections).run do
          step
          raise_ended("while it was loaded") if @child.status
        end
        @cpu_under_load = tree_cpu - before
        @memory_after_load = tree_memory("loaded")
        @loaded_until = now
        @child.restart_cpu_account
        await_rest
        raise_ended("while it was loaded") if @child.status
        @memory_at_rest = tree_memory("end")
        load
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def await_rest
        until now - @loaded_until >= REST_SECONDS || @child.status
          step
          sleep(POLL_SECONDS)
        end
      end

      # A server's work is done when the load is.
      def done_at = @loaded_until || @workload.done_at(@directory)

      # In clock ticks of 10 ms, as the kernel shows it of others: fine enough for seconds of load.
      def tree_cpu = @child.descendants.refresh.sum { |pid| Processes::Cpu.seconds(pid) || 0.0 }

      # Not sampled on its way up or down: each process of the server as the load left it.
      #
      # @param moment [String] the figures' names begin with it
      # @return [Hash{String => Integer, nil}] PSS is nil where a process may not be read
      def tree_memory(moment)
        pids = @child.descendants.refresh
        pss = pids.map { |pid| Processes::Memory.pss_bytes(pid) }
        { "#{moment}_rss_bytes" => pids.sum { |pid| Processes::Memory.rss_bytes(pid) || 0 }, "#{moment}_pss_bytes" => (pss.sum if pss.all?) }
      end

      def await_answer(target)
        status = nil
        until target.answers? && (status = target.status)
          step
          raise_ended("before it answered at #{target}") if @child.wait(POLL_START_SECONDS)
          next if @child.age_seconds <= START_SECONDS

          raise Exclusion, "nothing answered at #{target} within #{START_SECONDS} seconds"
        end
        raise Exclusion, "#{target} is answered with status #{status}" unless status.between?(200, 399)
      end

      def raise_ended(moment)
        raise Exclusion, "it #{@child.failure || "ended"} #{moment}#{last_words}"
      end

      # A server is asked to end by SIGTERM, and some then end by that signal or by the shell's code for it.
      def check_end(load)
        failure = @child.failure(allowed: load ? [SIGTERM, 128 + SIGTERM] : [])
        raise Exclusion, "it #{failure}#{last_words}" if failure
      end

      def last_words = @child.last_words&.then { |words| ": #{words}" }

      def check_witness(witness, series)
        objection = witness.objection(series.largest_process)
        return unless objection

        raise Exclusion, Witness.obstacle(program) || objection
      end

      # As the shell would find it.
      def program
        name = @workload.command.first
        return name if name.include?("/")

        ENV["PATH"].to_s.split(":").map { |directory| File.join(directory, name) }.find { |path| File.executable?(path) } || name
      end

      def figures(series, load, rest)
        { "peak_rss_bytes" => series.peak_rss_bytes, "mean_rss_bytes" => series.mean_rss_bytes,
          "end_rss_bytes" => series.end_rss_bytes,
          "peak_pss_bytes" => series.peak_pss_bytes, "mean_pss_bytes" => series.mean_pss_bytes,
          "cpu_seconds" => (@child.cpu_seconds + rest).round(6), "wall_seconds" => wall_seconds.round(6),
          **(load ? load_figures(load) : {}), "samples" => series.to_a }
      end

      # A server ends when it is asked to.
      def wall_seconds
        done = @workload.done_at(@directory)
        done ? done - @child.started_at : @child.wall_seconds
      end

      def load_figures(load)
        { **@memory_after_load, **@memory_at_rest, "requests" => load.requests, "requests_per_second" => load.requests_per_second.round(3),
          "p50_seconds" => load.p50_seconds, "p99_seconds" => load.p99_seconds,
          "cpu_per_request_seconds" => (@cpu_under_load / load.requests).round(9) }
      end
    end
  end
end
