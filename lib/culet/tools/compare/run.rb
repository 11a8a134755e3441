# frozen_string_literal: true

require "tmpdir"
require_relative "../../system/clock"
require_relative "../../system/executables"
require_relative "../../benchmark/child"
require_relative "../../benchmark/exclusion"
require_relative "load"
require_relative "load_target"
require_relative "sampler"
require_relative "../../benchmark/preload_check"

module Culet
  module Compare
    # One run of one workload with one allocator: starts the program, measures it, sends requests to a server, and
    # leaves no process behind.
    class Run
      POLL_SECONDS = 0.05
      # After SIGTERM a server finishes its requests and stops its workers.
      GRACE_SECONDS = 10
      START_SECONDS = 120
      # Between the load and the reading of the remaining memory; built-in programs wait as long.
      REST_SECONDS = 1.0
      POLL_START_SECONDS = 0.02
      # A run of which a larger share, of its time and of its CPU time, comes after the last sample is excluded.
      UNOBSERVED_SHARE = 0.5
      SIGTERM = Signal.list.fetch("TERM")
      private_constant :POLL_SECONDS, :GRACE_SECONDS, :START_SECONDS, :REST_SECONDS, :POLL_START_SECONDS,
                       :UNOBSERVED_SHARE, :SIGTERM

      # @param plan [Benchmark::Plan] timeout and load
      def initialize(workload:, choice:, plan:, interruption:)
        @workload = workload
        @choice = choice
        @plan = plan
        @interruption = interruption
      end

      # @return [Hash] an element of the result document's "runs", without "run" and "order"
      # @raise [Benchmark::Exclusion] when the run failed
      # @raise [Interrupted] when the user interrupted it
      # @raise [Culet::Error] when the program cannot be started
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
        # In its scratch directory a built-in server finds no configuration file of the user.
        @child = Benchmark::Child.new(command: @workload.command, environment: environment,
                                      directory: @workload.built_in? && target ? directory : Dir.pwd)
        sampled { target ? serve(target) : await_end }
      end

      # The load would go to the server that already listens there.
      def refuse_taken(target)
        return unless target.answers?

        raise Error, "another server already listens at #{target}; stop it, or change --url"
      end

      # Samples during the block; leaves no process behind.
      def sampled
        preload_check = Benchmark::PreloadCheck.new(@choice)
        sampler = Sampler.new(descendants: @child.descendants, preload_check: preload_check,
                              started_at: @child.started_at).start
        load = yield
        rest = @child.stop(grace_seconds: load ? GRACE_SECONDS : 0) { @interruption.requested? }
        @interruption.check
        series = sampler.stop(done_at: done_at)
        check_end(load)
        check_samples(series)
        check_allocator(preload_check, series)
        metrics(series, load, rest)
      ensure
        @child.stop(grace_seconds: 0)
        sampler&.stop unless series
      end

      def await_end
        check_limits until @child.wait(POLL_SECONDS)
        nil
      end

      # Called between samples, and during the load.
      def check_limits
        @interruption.check
        return if @child.age_seconds <= @plan.timeout_seconds

        raise Benchmark::Exclusion.new("it did not end within #{@plan.timeout_seconds} seconds",
                                       remedy: "raise the limit with --timeout SECONDS")
      end

      def serve(target)
        await_answer(target)
        before = tree_cpu
        load = run_load(target)
        @cpu_under_load = tree_cpu - before
        @memory_after_load = tree_memory("loaded")
        @loaded_until = Clock.now
        @child.restart_cpu_account
        await_rest
        raise_ended("under load") if @child.status
        @memory_at_rest = tree_memory("end")
        load
      end

      def run_load(target)
        Load.new(target: target, seconds: @plan.duration_seconds, connections: @plan.connections).run do
          check_limits
          raise_ended("under load") if @child.status
        end
      rescue Benchmark::Exclusion
        # Requests fail because the server has ended, which may be noticed after the load.
        raise if !@child.status && Processes::Cpu.alive?(@child.pid)

        @child.wait(nil)
        raise_ended("under load")
      end

      def await_rest
        until Clock.now - @loaded_until >= REST_SECONDS || @child.status
          check_limits
          sleep(POLL_SECONDS)
        end
      end

      # For a server, the end of the load.
      def done_at = @loaded_until || @workload.done_at(@directory)

      # In ticks of 10 ms, precise enough for a load of seconds.
      def tree_cpu = @child.descendants.refresh.sum { |pid| Processes::Cpu.seconds(pid) || 0.0 }

      # @param moment [String] prefix of the metrics' names
      # @return [Hash{String => Integer, nil}] PSS is nil where a process may not be read
      def tree_memory(moment)
        pids = @child.descendants.refresh
        pss = pids.map { |pid| Processes::Memory.pss_bytes(pid) }
        { "#{moment}_rss_bytes" => pids.sum { |pid| Processes::Memory.rss_bytes(pid) || 0 },
          "#{moment}_pss_bytes" => (pss.sum if pss.all?) }
      end

      def await_answer(target)
        until (status = target.status)
          check_limits
          raise_ended("before it answered at #{target}") if @child.wait(POLL_START_SECONDS)
          next if @child.age_seconds <= START_SECONDS

          raise Benchmark::Exclusion, "no server answered at #{target} within #{START_SECONDS} seconds"
        end
        check_status(target, status)
      end

      # A redirect is answered by the middleware: its figures say nothing about the application. Some pages of the
      # built-in Rails application redirect on purpose.
      def check_status(target, status)
        return if status.between?(200, @workload.built_in? ? 399 : 299)

        reason = "#{target} responds with status #{status}"
        raise Benchmark::Exclusion, reason unless status.between?(300, 399)

        remedy = "give the address that it leads to with --url, or, for Rails' redirect to https, " \
                 "set config.assume_ssl = true while you compare"
        raise Benchmark::Exclusion.new("#{reason}, a redirect, which the load does not follow", remedy: remedy)
      end

      def raise_ended(moment)
        raise Benchmark::Exclusion, "it #{@child.failure || "ended"} #{moment}#{diagnostic}"
      end

      # A server is stopped by SIGTERM; some exit with that signal, or with the shell's status for it.
      def check_end(load)
        failure = @child.failure(allowed: load ? [SIGTERM, 128 + SIGTERM] : [])
        raise Benchmark::Exclusion, "it #{failure}#{diagnostic}" if failure
      end

      # On a busy machine all samples may be of the shell that starts the program. Where little CPU time comes after the
      # last sample, the run's end was noticed late.
      def check_samples(series)
        total = @child.wall_seconds
        unobserved = series.last_at_seconds && (total - series.last_at_seconds)
        return unless unobserved && unobserved > total * UNOBSERVED_SHARE
        return if @child.cpu_seconds - series.sampled_cpu_seconds <= @child.cpu_seconds * UNOBSERVED_SHARE

        reason = format("no sample was taken in the last %.2f of its %.2f seconds", unobserved, total)
        raise Benchmark::Exclusion.new(reason, remedy: "compare while the machine does nothing else")
      end

      def diagnostic = @child.diagnostic&.then { |words| ": #{words}" }

      def check_allocator(preload_check, series)
        failure = preload_check.failure(series.largest_process)
        return unless failure

        raise Benchmark::Exclusion, Allocators::Preload.obstacles(program).first&.delete_suffix(".") || failure
      end

      def program = Executables.find(@workload.command.first) || @workload.command.first

      def metrics(series, load, rest)
        { "peak_rss_bytes" => series.peak_rss_bytes, "mean_rss_bytes" => series.mean_rss_bytes,
          "end_rss_bytes" => series.end_rss_bytes,
          "peak_pss_bytes" => series.peak_pss_bytes, "mean_pss_bytes" => series.mean_pss_bytes,
          "cpu_seconds" => (@child.cpu_seconds + rest).round(6), "wall_seconds" => wall_seconds.round(6),
          **(load ? load_metrics(load) : {}), "samples" => series.to_a }
      end

      def wall_seconds
        done = @workload.done_at(@directory)
        done ? done - @child.started_at : @child.wall_seconds
      end

      def load_metrics(load)
        { **@memory_after_load, **@memory_at_rest,
          "requests" => load.requests, "requests_per_second" => load.requests_per_second.round(3),
          "p50_seconds" => load.p50_seconds, "p99_seconds" => load.p99_seconds,
          "cpu_per_request_seconds" => (@cpu_under_load / load.requests).round(9) }
      end
    end
  end
end
