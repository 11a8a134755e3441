# frozen_string_literal: true

require_relative "../../benchmark/machine"
require_relative "../../benchmark/runner"
require_relative "../../errors"
require_relative "../../model/statistics"
require_relative "../../system/memory_group"
require_relative "../../text/size"
require_relative "program"
require_relative "../../model/trace/files"
require_relative "../../model/trace/header"

module Culet
  module Replay
    # The trace to replay, in place of a comparison's workload.
    class TraceFile
      attr_reader :path, :header

      # @raise [Culet::Error] when it is not a trace
      def initialize(path)
        @path = path
        @header = Trace::Header.read(path)
      end

      # @return [String]
      def name = File.basename(path)

      # @return [Array<String>] traces of other processes of the recording, the largest first
      def others = (Trace::Files.new(path).files - [File.expand_path(path)]).sort_by { |file| -File.size(file) }

      # @return [Hash] the trace's metadata, for the document
      def to_h = { **header.to_h, "other_traces" => others }

      # The interface of Compare::Workload.
      def server? = false

      def unprepared? = false
    end

    # Replays a trace with every allocator of a plan; the result has the form of a comparison's document.
    class Runner < Benchmark::Runner
      # @param plan [Benchmark::Plan] with a TraceFile as its only workload
      def initialize(plan:, options:, **runs)
        super(plan: plan, **runs)
        @options = options
        @trace = plan.workloads.first
        @program = Program.new(@trace.path, options: options)
      end

      # @return [Hash] also "trace", the trace's metadata; in each run "instructions" and "mean_live_bytes"; in each
      #   sample "live_bytes" and "operation"
      # @raise [Culet::Error] when the trace cannot be read
      def call
        info = @program.info
        check_memory(info["peak_live_bytes"])
        document = super(environment) { |scheduled| measure(scheduled) }
        document["results"].each { |result| result["summary"].merge!(instructions(result["runs"])) }
        { **document, "trace" => { **@trace.to_h, **info } }
      end

      private

      # What a replay takes is what the trace says, and anybody may have written the trace.
      def check_memory(needed)
        available = MemoryGroup.available_bytes
        return if @options.touch == "none" || needed <= available

        raise Error, "#{@trace.path} has #{Text::Size.human(needed)} in use at its peak, and " \
                     "#{Text::Size.human(available)} of memory are available; replay it on a larger machine, or with " \
                     "--touch none"
      end

      def environment
        Benchmark::Machine.new(plan: @plan).to_h.merge("touch" => @options.touch || "line",
                                                       "paced" => !!@options.paced, "single" => !!@options.single)
      end

      def measure(scheduled)
        environment = scheduled.choice.environment(isolated: true)
        replay = @program.run(environment, seconds: @plan.timeout_seconds) { @interruption.check }
        metrics(replay.fetch("play"))
      rescue Interrupted
        raise
      rescue Error => e
        raise Benchmark::Exclusion, e.message
      end

      # The metrics under their names in a comparison.
      def metrics(replay)
        { "peak_rss_bytes" => replay["peak_resident_bytes"], "mean_rss_bytes" => replay["mean_resident_bytes"],
          **replay.slice("mean_live_bytes", "cpu_seconds", "wall_seconds", "instructions"),
          "samples" => replay["samples"].map { |sample| sample(sample) } }
      end

      def sample(sample)
        { "at_seconds" => sample[@options.paced ? "wall_seconds" : "at_seconds"],
          "rss_bytes" => sample["resident_bytes"],
          **sample.slice("live_bytes", "operation") }
      end

      def instructions(runs)
        counts = runs.filter_map { |run| run["instructions"] }
        counts.empty? ? {} : { "instructions" => Statistics.new(seed: @plan.seed).summary(counts) }
      end
    end
  end
end
