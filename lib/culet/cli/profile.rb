# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "command_run"
require_relative "numbers"
require_relative "process_arguments"
require_relative "../model/kept_sites"
require_relative "../model/retention/reading"
require_relative "../system/ruby_options"
require_relative "../system/interruption"
require_relative "../tools/profile"
require_relative "../tools/profile/command"
require_relative "../tools/profile/session"

module Culet
  module CLI
    # `culet profile`: which code holds the memory of a program.
    class Profile < Command
      include CommandRun
      include ProcessArguments

      TOP = 20
      # Duration if the profile was off and --for is not given.
      PROFILE_SECONDS = 30.0
      # Of continuous mode.
      INTERVAL_SECONDS = 60.0
      KEEP = 60
      MOST_KEPT = 1_000_000
      # Of the processes of a command.
      MOST_LOOKS = 16
      # Mean distance of samples for the view growth, where the profile was off: a leak of 1 MB is found.
      GROWTH_SAMPLE_BYTES = 32 << 10
      MOST_SAMPLE_BYTES = 1 << 40
      # Option => the class that makes its file.
      EXPORTS = { pprof: :Pprof, speedscope: :Speedscope, firefox: :Firefox,
                  collapsed: :Collapsed }.freeze
      # Options of a report, which continuous mode does not write.
      REPORT = [*EXPORTS.keys, :html, :view, :by, :top, :save, :base, :collect].freeze
      private_constant :TOP, :PROFILE_SECONDS, :INTERVAL_SECONDS, :KEEP, :MOST_KEPT, :MOST_LOOKS,
                       :GROWTH_SAMPLE_BYTES, :MOST_SAMPLE_BYTES, :EXPORTS, :REPORT

      BANNER = "culet profile PID|NAME ... | FILE ... | -- COMMAND ..."
      EXAMPLES = ["culet profile -- ruby job.rb            a command, until it ends or Ctrl-C",
                  "#{RubyOptions.advice("profile")} culet run -- puma    prepare a server",
                  "culet profile --allocator jemalloc -- ruby job.rb",
                  "culet profile puma --for 60s            a server by name, with its workers",
                  "culet profile puma --view growth --collect    memory that stays: leaks",
                  "culet profile puma --by gem --html profile.html",
                  "culet profile puma --save before.profile",
                  "culet profile after.profile --base before.profile",
                  "culet profile puma --every 1m --keep 60 --out-dir profiles",
                  "culet profile puma --every 1m --push http://localhost:4040",
                  "culet profile --every 1m --out-dir profiles -- bundle exec puma"].freeze

      # @return [Integer] exit status
      def execute(words, command)
        check(words, command)
        return continue(words, command) if continuous?

        check_destinations(*EXPORTS.keys, :html, :save)
        @interruption = Culet::Interruption.new
        streams = command ? run(command) : read(words)
        save(streams) if options[:save]
        conclude(streams)
        ended_status || EXIT_OK
      end

      private

      def define(parser)
        paragraph(parser, "Samples the allocations of a program, by Ruby and C code, until --for, Ctrl-C or its end. " \
                          "A running program must be on culet's allocator and have loaded culet/profile; culet " \
                          "starts a command in this way, or on another allocator. Sizes are estimates with a 95 % " \
                          "interval.")
        define_names(parser)
        define_report(parser)
        define_sampling(parser)
        define_files(parser)
        define_continuous(parser)
      end

      def define_report(parser)
        duration(parser, "--for TIME", "profile for TIME (30s, 5m); default: #{PROFILE_SECONDS.round}s if the " \
                                       "profile is off, else report at once")
        option(parser, "--view VIEW", Culet::Profile::VIEWS,
               "live: in use now (default); allocated: since the start; peak: in use at the largest resident size; " \
               "growth: allocated after the boot (the start of the profile, the fork, or the first request), or with " \
               "--for after the start of the command, and still in use after three major collections; steady growth " \
               "first",
               &:to_sym)
        option(parser, "--collect", "run three major collections in each process before the reading; the process " \
                                    "stops meanwhile")
        option(parser, "--[no-]holders", "find the holders of lines that grow (default: with --view growth); " \
                                         "each process is forked once")
        option(parser, "--by KIND", Culet::Profile::KINDS,
               "add up by #{Culet::Profile::KINDS.join(", ")}; line: of the program's own code, beside the line " \
               "of the library", &:to_sym)
        number(parser, "--top N", "lines of the report (default: #{TOP})", most: Numbers::MOST_LINES)
      end

      def define_sampling(parser)
        option(parser, "--sample BYTES", "mean distance of two samples in bytes (128k, 2m; default: 512k, and 32k " \
                                         "with --view growth)") do |v|
          bytes("--sample", v, takes: "a number of bytes, e.g. 128k, 512k or 2m", most: MOST_SAMPLE_BYTES)
        end
        option(parser, "-a", "--allocator NAME[:SETTING]", "allocator of the command (default: culet)")
        option(parser, "--base FILE", "report the difference to a file of --save (may be repeated)") do |v|
          [*options[:base], v]
        end
      end

      def define_files(parser)
        option(parser, "--html FILE", "write an HTML page with flame graphs")
        option(parser, "--pprof FILE", "write a file for `go tool pprof`")
        option(parser, "--speedscope FILE", "write a file for speedscope")
        option(parser, "--firefox FILE", "write a file for the Firefox Profiler")
        option(parser, "--collapsed FILE", "write one line per stack, for flamegraph.pl")
        option(parser, "--save FILE", "write the profile itself (FILE.PID of each process, if there are several)")
      end

      def define_continuous(parser)
        duration(parser, "--every TIME", "write one pprof file per interval, until --for, Ctrl-C or the end of the " \
                                         "command (default: 1m)")
        option(parser, "--out-dir DIR", "write the pprof files to DIR")
        number(parser, "--keep N", "keep the newest N files (default: #{KEEP})", most: MOST_KEPT)
        option(parser, "--push URL", "send the pprof files to a Pyroscope server; credentials: CULET_PUSH_USER and " \
                                     "CULET_PUSH_PASSWORD, or CULET_PUSH_TOKEN")
        option(parser, "--app NAME", "name of the application for --push (default: the first process's title, or " \
                                     "the command)")
      end

      def check(words, command)
        check_subject(words, command, "`culet profile PID`, `culet profile puma`")
        if options[:for] && command
          raise UsageError, "--for cannot be used with a command, which is profiled until it ends"
        end
        raise UsageError, "--allocator needs a command" if options[:allocator] && !command
        raise UsageError, "--collect needs a process" if options[:collect] && command

        check_files(words)
        check_continuous(words)
      end

      def check_files(words)
        files = words.select { |word| file?(word) }
        raise UsageError, "give processes or files, not both" if files.any? && files != words

        absent = words.find { |word| word.end_with?(".profile") && !File.exist?(word) } if files.empty?
        raise Error, "there is no file #{absent}" if absent

        option = %i[for sample collect].find { |name| options.key?(name) }
        raise UsageError, "--#{option} needs a process or a command, not a file" if option && files.any?
      end

      def check_continuous(words)
        raise UsageError, "--keep needs --out-dir" if options[:keep] && !options[:out_dir]
        raise UsageError, "--app needs --push" if options[:app] && !options[:push]
        return unless continuous?

        raise UsageError, "--every needs --out-dir or --push" unless options[:out_dir] || options[:push]
        raise UsageError, "continuous mode needs processes or a command, not files" if words.any? && file?(words.first)

        option = REPORT.find { |name| options.key?(name) }
        raise UsageError, "--#{option} cannot be combined with --every, --out-dir and --push" if option
        raise UsageError, "--every takes at least 1s" if options.fetch(:every, INTERVAL_SECONDS) < 1
      end

      def continuous? = %i[every out_dir push].any? { |name| options.key?(name) }

      # @return [Array<Culet::Profile::Stream>]
      def read(words)
        return words.map { |path| Culet::Profile::Stream.load(path) } if file?(words.first)

        @interruption.watch { follow(session(words)) }
      end

      def session(words)
        Culet::Profile::Session.new(sample_bytes: sample_bytes, stop: @interruption.method(:requested?),
                                    notes: err, collect: options.key?(:collect),
                                    growth: view == :growth && options.key?(:for)) do
          all_named(words, files: false).map { |word| Processes::Live.number(word) }
        end
      end

      def follow(session)
        session.start
        wait(session)
        streams = session.read
        @levels = session.growth_levels
        raise Error, "no process is left whose profile can be read" if streams.empty?

        @found = merged(streams)
        look_at(@found.recordings.select { |one| one.state == :running }.map(&:pid)) if @found.growing.any?
        streams
      ensure
        session.stop
      end

      # @param pids [Array<Integer>] processes that grow
      def look_at(pids)
        pids.each { |pid| look(pid) } if holders?
      rescue Error => e
        err.puts("culet: what keeps the lines that grow is not known: #{e.message}")
      end

      # @raise [Culet::Error]
      def look(pid)
        document = Culet::Retention::Reading.of_process(pid, samples: true)
        (@looks ||= []) << Culet::Retention::Analysis.new(document, name: "process #{pid}")
      end

      # A command may have any number of processes; each waits for its look.
      def look_at_end(pid) = (look_at([pid]) if @looks.to_a.size < MOST_LOOKS)

      def holders? = view == :growth && options.fetch(:holders, true)

      def wait(session)
        seconds = options[:for] || (PROFILE_SECONDS if session.started?) or return
        session.announce("for #{seconds.to_s.delete_suffix(".0")} s; Ctrl-C reports now")
        session.follow(seconds)
      end

      def run(command) = with_command(command, look: (method(:look_at_end) if holders?), &:call)

      # @yieldparam process [Culet::Profile::Command]
      # @return the block's value
      def with_command(command, look: nil)
        choice = Allocators.parse(options.fetch(:allocator, "culet"))
        process = launch(command) do |path|
          Culet::Profile::Command.new(command: command, program: path, sample_bytes: sample_bytes, choice: choice,
                                      notes: err, redirections: redirections, look: look).start
        end
        result = yield process
        @status = ended(process.status)
        result
      end

      def save(streams)
        streams.zip(names(streams)).each { |stream, path| write_file(path, stream.text, secret: true) }
      end

      # A process that exec replaced has its number twice.
      def names(streams)
        return [options[:save]] if streams.size == 1

        number = 0
        names = streams.map { |stream| "#{options[:save]}.#{stream.pid || (number += 1)}" }
        names.each_with_index.map { |name, at| (same = names.first(at).count(name)).zero? ? name : "#{name}.#{same}" }
      end

      def conclude(streams)
        base = options[:base] && merged(options[:base].map { |path| Culet::Profile::Stream.load(path) })
        found = @found || merged(streams)
        draw(found, base) if options[:html]
        data = base ? Culet::Profile::Difference.new(found, base) : found
        EXPORTS.each { |name, maker| export(data, name, maker) if options[name] }
        deliver(render(data))
      end

      def merged(streams) = Culet::Profile::Data.new(streams.map(&:recording))

      def draw(data, base)
        require_relative "../tools/profile/page"
        write_file(options[:html], Culet::Profile::Html.new(data, view: view, base: base).to_s)
      end

      def view = options.fetch(:view, :live)

      # @return [Integer, nil] nil: the default of the process
      def sample_bytes = options.fetch(:sample) { GROWTH_SAMPLE_BYTES if view == :growth }

      def export(data, name, maker)
        write_file(options[name], Culet::Profile.const_get(maker).new(data, view: view).to_s)
      end

      def render(data)
        growth = Culet::Profile::Growth.new(data, levels: @levels) if view == :growth
        shape = { view: view, by: options[:by], top: options[:top], growth: growth,
                  kept: (Culet::KeptSites.new(data, @looks) if @looks) }
        formatted(Culet::Profile::Document.new(data, **shape)) do
          Culet::Profile::Table.new(data, **shape, color: color?)
        end
      end

      def continue(words, command)
        require_relative "../tools/profile/continuous"
        @interruption = Culet::Interruption.new
        destinations = destinations(words, command)
        written = command ? write_command(command, destinations) : write_processes(words, destinations)
        deliver(JSON.generate(figures(written, destinations))) if options[:json] || options[:out]
        check_sent(destinations.last)
        ended_status || EXIT_OK
      end

      # @return [Integer, nil] exit status of a command, or after a signal
      def ended_status = @status || @interruption.exit_status

      # @return [Culet::Profile::Continuous]
      def write_command(command, destinations)
        with_command(command) { |process| continuous(process, destinations, lasting: true).tap(&:call) }
      end

      # @return [Culet::Profile::Continuous]
      def write_processes(words, destinations)
        profile = continuous(session(words), destinations, for_seconds: options[:for], lasting: words.any?(/\D/))
        @interruption.watch { profile.call }
        profile
      end

      def continuous(session, destinations, **options)
        every = self.options.fetch(:every, INTERVAL_SECONDS)
        Culet::Profile::Continuous.new(session, destinations, every_seconds: every, **options)
      end

      # The address is checked first: a wrong one makes no directory.
      def destinations(words, command)
        require_relative "../tools/profile/pyroscope"
        require_relative "../tools/profile/rotation"
        server = options[:push] && Culet::Profile::Pyroscope.new(options[:push], name: app(words, command), notes: err)
        folder = options[:out_dir] && Culet::Profile::Rotation.new(options[:out_dir], keep: options.fetch(:keep, KEEP))
        [folder, server].compact
      end

      def app(words, command)
        options.fetch(:app) do
          next File.basename(command.first) if command
          next words.first if words.first.match?(/\D/)

          identity = Processes::Identity.new(Processes::Live.find(words.first).pid)
          identity.script || identity.title[/\A[^\s:]+/]
        end
      end

      def figures(continuous, destinations)
        destinations.reduce("intervals" => continuous.intervals) { |sum, destination| sum.merge(destination.to_h) }
      end

      def check_sent(server)
        return unless server.is_a?(Culet::Profile::Pyroscope) && server.dropped.positive?

        raise Error.new("#{server.dropped} of #{server.sent + server.dropped} profiles were not accepted: " \
                        "#{server.problem || "the server was too slow"}",
                        exit_status: [ended_status || EXIT_OK, EXIT_FAILED].max)
      end
    end
  end
end
