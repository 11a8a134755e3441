# frozen_string_literal: true

require_relative "command"
require_relative "process_arguments"
require_relative "../system/interruption"
require_relative "../system/processes"
require_relative "../tools/autopsy/box"
require_relative "../tools/explain"
require_relative "../tools/live/recording"
require_relative "../tools/profile/session"
require_relative "../../../boot/lib/report/unused"

module Culet
  module CLI
    # `culet explain`: one verdict on a process tree, and what to do.
    class Explain < Command
      include ProcessArguments

      SECONDS = 60.0
      private_constant :SECONDS

      BANNER = "culet explain PID|NAME"
      EXAMPLES = ["culet explain puma                        a server and its workers, watched for a minute",
                  "culet explain 4242 --for 10m              longer, to tell a leak from a cache",
                  "culet explain puma --history puma.live    with a recording of `culet live --record`",
                  "culet explain puma --html explain.html    a page to share",
                  "culet explain puma --fit 2GB              the number of workers that fit into 2 GB",
                  "culet explain puma --json --out before.json",
                  "culet explain puma --check before.json    after a change: the saving"].freeze

      private

      def execute(words, *)
        check(words)
        check_destinations(:html)
        before = Culet::Explain::PredictionCheck.load(options[:check]) if options[:check]
        @history = history
        @interruption = Culet::Interruption.new
        diagnosis = @interruption.watch { diagnose(Integer(one_named(words.first, files: false), 10)) }
        write_page(diagnosis) if options[:html]
        deliver(render(diagnosis, before))
        @interruption.exit_status || EXIT_OK
      end

      def define(parser)
        paragraph(parser, "Watches a process and its descendants, and names the cause of their memory use: a leak, " \
                          "memory that malloc or Ruby keeps free, sharing lost after a fork, code that never runs, " \
                          "or the work itself. Then lists remedies, the largest saving first. The report has more if " \
                          "the program has loaded culet/agent or culet/profile.")
        define_names(parser)
        duration(parser, "--for TIME", "watch for TIME (30s, 10m; default: #{SECONDS.round}s)")
        option(parser, "--history FILE", "also use the trend of memory in a recording of `culet live`")
        option(parser, "--html FILE", "write a page with the verdict, the levels over time, and the remedies")
        option(parser, "--fit SIZE", "print how many workers fit into SIZE (2GB, 512MiB)") { |v| bytes("--fit", v) }
        option(parser, "--check FILE", "compare with the predictions of an earlier --json document")
      end

      def check(words)
        raise UsageError, "no process given; write `culet explain PID` or `culet explain puma`" if words.empty?
        raise UsageError, "give one process; its descendants are looked at, too" if words.size > 1
      end

      def diagnose(pid)
        process = Processes::Live.find(pid)
        process.check_running
        process.read("maps") # says why it may not be read, before the watch
        seconds = options.fetch(:for, SECONDS)
        err.puts("culet: watching process #{pid} for #{seconds.round} s; Ctrl-C reports now")
        watch = Culet::Explain::Watch.new(pid, seconds: seconds, interruption: @interruption, session: profile(pid))
        observation = watch.call
        observation.processes.each { |process| add_box(process) }
        observation.history = @history
        Culet::Diagnosis.new(observation, unused: unused(observation), fit_bytes: options[:fit])
      end

      # @return [Culet::Diagnosis::History] of what was recorded
      def history
        Culet::Diagnosis::History.new.tap do |history|
          recording = Culet::Live::Recording.new(options[:history]) if options[:history]
          recording&.each_moment { |moment| history.add_moment(moment) }
        end
      end

      def add_box(process)
        link = Processes::Marks.black_box(process.pid)
        @history.add_box(process, Culet::Autopsy::Box.load(link, follow: true)) if link
      rescue Error => e
        err.puts("culet: #{e.message}")
      end

      # Only of processes that have loaded culet/profile.
      def profile(pid)
        carrying = Processes::Tree.new(pid).pids.select { |one| Processes::Marks.profile?(one) }
        return if carrying.empty?

        Culet::Profile::Session.new(sample_bytes: nil, stop: @interruption.method(:requested?), notes: err,
                                    growth: true) { carrying }.start
      rescue Error => e
        err.puts("culet: #{e.message}")
        nil
      end

      # @return [Hash, nil] as of `culet requires --unused --json`; nil: the process has not loaded culet/unused
      def unused(observation)
        largest = observation.processes.first or return
        Culet::Boot::Unused.new([Culet::Boot::UnusedInquiry.new(largest.pid, patience: 10.0).call]).to_h
      rescue Error
        nil # it does not record which code runs
      end

      def render(diagnosis, before)
        compared = before&.compare(diagnosis)
        if options[:json]
          document = Culet::Explain::Document.new(diagnosis).to_h
          return JSON.generate(compared ? document.merge("check" => compared) : document)
        end

        text = fitted { Culet::Explain::Table.new(diagnosis, color: color?) }
        compared ? "#{text}\n#{before.sentence(compared)}\n" : text
      end

      def write_page(diagnosis) = write_file(options[:html], Culet::Explain::Html.new(diagnosis).to_s)
    end
  end
end
