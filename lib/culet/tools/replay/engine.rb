# frozen_string_literal: true

require_relative "../compare/document"
require_relative "../compare/exclusion"
require_relative "../compare/machine"
require_relative "../compare/plan"
require_relative "../compare/statistics"
require_relative "player"

module Culet
  module Replay
    # Plays a trace under every contender of a plan in turns, and makes a document in the form of a comparison's.
    class Engine
      # @param plan [Compare::Plan] whose one workload is the Subject
      # @param settings [Player::Settings]
      # @param interruption [Compare::Interruption]
      # @param progress [Compare::Progress]
      def initialize(plan:, settings:, interruption:, progress:)
        @plan = plan
        @subject = plan.workloads.first
        @player = Player.new(@subject.path, settings: settings)
        @settings = settings
        @interruption = interruption
        @progress = progress
        @document = Compare::Document.new(plan)
      end

      # @return [Hash] the document of a comparison; with "trace", what is in the trace, and for each run also
      #   "instructions", "mean_live_bytes", and with each sample "live_bytes" and "operation"
      # @raise [Culet::Error] when the trace cannot be read
      def call
        info = @player.info
        complete = make_runs
        document = @document.to_h(complete: complete, environment: environment)
        document["results"].each { |result| result["summary"].merge!(instructions(result["runs"])) }
        { **document, "trace" => { **@subject.header.to_h, **info } }
      ensure
        @progress.finish
      end

      private

      def environment
        Compare::Machine.new(plan: @plan).to_h.merge("touch" => @settings.touch || "line", "paced" => !!@settings.paced, "single" => !!@settings.single)
                        .reject { |key, _| %w[sampling_interval_seconds load_generator scale].include?(key) }
      end

      def make_runs
        @plan.choices.each { |choice| exclude_absent(choice) }
        @plan.turns.each do |turn|
          @interruption.check
          make(turn)
        end
        true
      rescue Compare::Interrupted
        false
      end

      # The catalogue's sentence is "what is wrong: what to do".
      def exclude_absent(choice)
        choice.library
      rescue Error => e
        reason, remedy = e.message.split(": ", 2)
        exclude(choice, nil, Compare::Exclusion.new(reason, remedy: remedy))
      end

      def make(turn)
        return @progress.skip if @document.excluded?(turn.workload.name, turn.choice.spec)

        @progress.start(turn)
        figures = figures(@player.play(turn.choice.environment(isolated: true), seconds: @plan.timeout_seconds).fetch("play"))
        @document.add(turn, figures)
        @progress.done(turn, figures)
      rescue Compare::Interrupted
        raise
      rescue Error => e
        @interruption.check
        exclude(turn.choice, turn.run, Compare::Exclusion.new(e.message))
        @progress.skip
      end

      def exclude(choice, run, exclusion)
        @document.exclude(@subject.name, choice.spec, run, exclusion)
        @progress.excluded(@subject.name, choice.spec, run, exclusion)
      end

      # By the names that a comparison has for the same things.
      def figures(play)
        { "peak_rss_bytes" => play["peak_resident_bytes"], "mean_rss_bytes" => play["mean_resident_bytes"],
          "mean_live_bytes" => play["mean_live_bytes"], "cpu_seconds" => play["cpu_seconds"], "wall_seconds" => play["wall_seconds"],
          "instructions" => play["instructions"], "samples" => play["samples"].map { |sample| point(sample) } }
      end

      def point(sample)
        { "at_seconds" => sample[@settings.paced ? "wall_seconds" : "at_seconds"], "rss_bytes" => sample["resident_bytes"],
          "live_bytes" => sample["live_bytes"], "operation" => sample["operation"] }
      end

      def instructions(runs)
        counts = runs.filter_map { |run| run["instructions"] }
        counts.empty? ? {} : { "instructions" => Compare::Statistics.new(seed: @plan.seed).summary(counts) }
      end
    end
  end
end
