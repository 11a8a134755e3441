# frozen_string_literal: true

require "io/wait"
require_relative "../../../system/clock"
require_relative "../../../benchmark/child"
require_relative "../../../benchmark/exclusion"
require_relative "../../../benchmark/preload_check"
require_relative "../../../system/processes"

module Culet
  module Cow
    module Experiment
      # One run of the script. Both processes are measured after each phase; no process outlives the run.
      class Run
        PHASES = %w[built forked first second].freeze
        LINE = /\Aphase (\w+)(?: (\S+))?\n\z/
        # Of a longer line, the rest is not read.
        MOST_LINE_BYTES = 200
        # Interval of checks for an interruption.
        STEP_SECONDS = 0.2
        private_constant :PHASES, :LINE, :MOST_LINE_BYTES, :STEP_SECONDS

        # @param strings [Integer] number of strings
        # @param timeout_seconds [Float] for one phase
        def initialize(contender:, variant:, strings:, timeout_seconds:, interruption:)
          @contender = contender
          @variant = variant
          @strings = strings
          @timeout = timeout_seconds
          @interruption = interruption
        end

        # @return [Hash{String => Numeric, Hash}] the figures
        # @raise [Benchmark::Exclusion] when the run is not valid
        # @raise [Interrupted] after an interruption
        # @raise [Culet::Error] when the program cannot be started
        def call
          start
          @figures = { "phases" => {} }
          PHASES.each { |name| step(name) }
          summary
        ensure
          finish
        end

        private

        def start
          input, @go = IO.pipe
          @lines, output = IO.pipe
          environment = ENV.to_h.merge(@contender.choice.environment(isolated: true), settings).compact
          @parent = Benchmark::Child.new(command: @contender.interpreter.command, environment: environment,
                                         in: input, out: output)
          @preload_check = Benchmark::PreloadCheck.new(@contender.choice)
        ensure
          [input, output].compact.each(&:close)
        end

        def settings
          { "CULET_COW_STRINGS" => @strings.to_s, "CULET_COW_VARIANT" => @variant.key,
            "CULET_COW_WARM" => @variant.warm ? "1" : "0" }
        end

        def step(name)
          figure = await(name)
          check_preload if name == "built"
          @child = whole(figure) if name == "forked"
          @figures["gc_#{name}_seconds"] = seconds(name, figure) if %w[first second].include?(name)
          @figures["phases"][name] = measure
          @go.puts
        rescue Errno::EPIPE
          raise Benchmark::Exclusion, "the program ended after phase #{name}#{error_line}"
        end

        def check_preload
          @preload_check.examine([@parent.pid])
          failure = @preload_check.failure(@parent.pid)
          raise Benchmark::Exclusion, failure if failure
        end

        # @return [String, nil] the value after the phase's name
        def await(name)
          line = line_within(@timeout)
          match = LINE.match(line)
          raise Benchmark::Exclusion, "the program ended before phase #{name}#{error_line}" unless line
          unless match && match[1] == name
            raise Benchmark::Exclusion, "the program printed #{line.strip.inspect} instead of \"phase #{name}\""
          end

          match[2]
        end

        # A script may print part of a line, or bytes that are not UTF-8.
        def line_within(seconds)
          deadline = Clock.now + seconds
          line = "".b
          until line.end_with?("\n") || line.bytesize == MOST_LINE_BYTES
            ready = @lines.wait_readable(STEP_SECONDS)
            @interruption.check
            if Clock.now > deadline
              raise Benchmark::Exclusion, "the next phase was not reached within #{seconds.round} seconds"
            end

            line << (@lines.getbyte || break) if ready
          end
          line unless line.empty?
        end

        def whole(text)
          Integer(text.to_s, 10, exception: false) || raise(Benchmark::Exclusion, "phase forked has no process number")
        end

        def seconds(name, text)
          Float(text.to_s, exception: false) || raise(Benchmark::Exclusion, "phase #{name} has no seconds")
        end

        # @return [Hash] the kernel's figures of both processes
        def measure = { "parent" => figures_of(@parent.pid), "child" => @child && figures_of(@child) }.compact

        def figures_of(pid)
          all = Processes::Memory.rollup(pid)
          raise Benchmark::Exclusion, "process #{pid} is not readable" if all.empty?

          all.slice("rss_bytes", "pss_bytes", "shared_bytes", "private_bytes")
        end

        # The table's figures: both processes at the end, and their PSS right after the fork.
        def summary
          forked, last = @figures["phases"].values_at("forked", "second")
          flat = %w[parent child].product(%w[rss_bytes shared_bytes private_bytes]).to_h do |who, figure|
            ["#{who}_#{figure}", last[who][figure]]
          end
          { **@figures, **flat, "forked_pss_bytes" => forked.values.sum { |one| one["pss_bytes"] },
            "total_pss_bytes" => last.values.sum { |one| one["pss_bytes"] } }
        end

        def error_line = @parent.diagnostic&.then { |line| ": #{line}" }

        # The script ends at the end of its input; remaining processes are killed.
        def finish
          @go&.close
          @parent&.stop
        ensure
          @lines&.close
        end
      end
    end
  end
end
