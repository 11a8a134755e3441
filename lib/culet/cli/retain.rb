# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "command_run"
require_relative "numbers"
require_relative "process_arguments"
require_relative "../model/kept_sites"
require_relative "../model/profile/inquiry"
require_relative "../model/retention/looks"
require_relative "../model/retention/reading"
require_relative "../system/interruption"
require_relative "../system/ruby_options"
require_relative "../model/agent/command"
require_relative "../tools/retain"

module Culet
  module CLI
    # `culet retain`: what keeps the memory of a program.
    class Retain < Command
      include CommandRun
      include ProcessArguments

      GROWTH_SECONDS = 30.0
      KINDS = %w[holder class gem].freeze
      ADDRESS = /\A0x\h{1,16}\z/
      # A longer name is no class's.
      LONGEST_NAME = 200
      NAME = /\A\p{Upper}[\p{Word}[^\x00-\x7f]]*(?:::\p{Upper}[\p{Word}[^\x00-\x7f]]*)*\z/
      # Of one process or dump.
      SINGLE = { html: "--html", heapsnapshot: "--heapsnapshot", path: "--path" }.freeze
      private_constant :GROWTH_SECONDS, :KINDS, :ADDRESS, :LONGEST_NAME, :NAME, :SINGLE

      BANNER = "culet retain PID|NAME ... | DUMP | -- COMMAND ..."
      EXAMPLES = ["#{RubyOptions.advice("agent")} bundle exec puma    load the agent",
                  "culet retain puma                     a server by name, with its workers",
                  "culet retain 4242 --growth --for 5m   holders that grow",
                  "culet retain 4242 --by gem",
                  "culet retain 4242 --class User        what keeps the instances of a class",
                  "culet retain 4242 --path 0x7f3a2c     what keeps one object",
                  "culet retain 4242 --html retain.html --heapsnapshot app.heapsnapshot",
                  "culet retain -- ruby job.rb           a command, at its end",
                  "culet retain heap.json                a dump by ObjectSpace.dump_all"].freeze

      # @return [Integer] exit status
      def execute(words, command)
        check_subject(words, command, "`culet retain PID`, `culet retain heap.json`")
        check_views(command)
        check_destinations(:html, :heapsnapshot)
        return run(command) if command

        @interruption = Culet::Interruption.new
        report(sources(words))
        @interruption.exit_status || EXIT_OK
      end

      private

      def define(parser)
        paragraph(parser, "Lists the constants, variables, closures and other roots that keep memory, with the " \
                          "amount. A running process must have loaded culet/agent. It stops only for a fork; the " \
                          "analysis runs in the copy. Without --content, texts of Strings stay in the process.")
        define_names(parser)
        define_views(parser)
        option(parser, "--growth", "look #{Culet::Retention::Growth::LOOKS} times and show the holders that grow")
        duration(parser, "--for TIME", "duration of --growth (5m, 1h; default: #{GROWTH_SECONDS.round}s)")
        option(parser, "--html FILE", "write an HTML page with a flame graph")
        option(parser, "--heapsnapshot FILE", "write all objects for Chrome's DevTools (Memory, Load)")
        option(parser, "--content", "show the texts of Strings and keys; files are then private (mode 0600)")
      end

      def define_views(parser)
        option(parser, "--by KIND", KINDS, "add up by #{KINDS.join(", ")} (default: holder)", &:to_sym)
        number(parser, "--top N", "lines of each list (default: 10 holders, 20 classes)", most: Numbers::MOST_LINES)
        option(parser, "--classes", "also list the instances of each class")
        option(parser, "--class NAME", "show what keeps the instances of one class")
        option(parser, "--path ADDRESS", "show what keeps one object (0x7f..., as in --json)")
        option(parser, "--duplicates", "list equal Strings and what keeps them")
      end

      def check_views(command)
        if options[:class] && !(options[:class].size <= LONGEST_NAME && options[:class].match?(NAME))
          raise UsageError, "--class takes the name of a class, e.g. User or Shop::Page, not " \
                            "#{shortened(options[:class])}"
        end
        if options[:path] && !options[:path].match?(ADDRESS)
          raise UsageError, "--path takes an address, e.g. 0x7f3a2c10, not #{shortened(options[:path])}"
        end
        raise UsageError, "--class and --path cannot be combined" if options[:class] && options[:path]
        raise UsageError, "--for needs --growth" if options[:for] && !options[:growth]
        return unless options[:growth]
        raise UsageError, "--growth needs a running process" if command
        return unless options[:class] || options[:path] || options[:duplicates] || options[:by]

        raise UsageError, "--growth has its own list; --by, --class, --path and --duplicates cannot be combined with it"
      end

      # @return [Array<Integer, String>] process numbers, and one dump at most
      def sources(words)
        words = all_named(words).map { |word| word.match?(/\A\d+\z/) ? word.to_i : word }
        return words if words.size == 1

        flag = SINGLE.find { |key, _| options[key] }&.last
        raise UsageError, "#{flag} is about one process; give its number, e.g. #{words.first}" if flag
        raise UsageError, "give one dump, or processes" if words.any?(String)

        words
      end

      def report(sources)
        raise UsageError, "--growth needs a running process" if options[:growth] && sources.first.is_a?(String)

        results = @interruption.watch { sources.filter_map { |source| result(source, alone: sources.size == 1) } }
        raise Error, "none of these processes could be asked" if results.empty?

        write_files(results.first, sources.first)
        deliver(render(results), secret: content?)
      end

      # @param alone [Boolean] whether a failure is one of the whole; else it is a message
      # @return [Culet::Retention::Analysis, Culet::Retention::Growth, nil]
      def result(source, alone:)
        options[:growth] ? growth(source) : look(source)
      rescue Error => e
        raise if alone

        err.puts("culet: #{e.message}")
        nil
      end

      def growth(source)
        profile = Culet::Profile::Inquiry.new(source, verb: "retain")
        sampled = profile.running?
        growth = looks(source, samples: sampled)
        growth.sites = sites(profile, growth.analysis) if sampled
        growth
      end

      # @return [Culet::Retention::Growth]
      # @raise [Culet::Error] when no look succeeds
      def looks(source, samples:)
        looks = Culet::Retention::Looks.new(seconds: options.fetch(:for, GROWTH_SECONDS),
                                            interruption: @interruption) do
          look(source, samples: samples, again: false)
        end
        looks.call
        growth = looks.growth or raise Error, looks.problem
        count = growth.looks.size
        err.puts("culet: #{looks.problem}; the report has the #{count} looks until then") if looks.problem
        growth
      end

      # @return [Culet::KeptSites, nil] nil: the process has ended meanwhile
      def sites(profile, analysis)
        recording = Culet::Profile::Recording.new(profile.read, name: analysis.name)
        Culet::KeptSites.new(Culet::Profile::Data.new([recording]), [analysis])
      rescue Error => e
        err.puts("culet: where it was allocated is not known: #{e.message}")
        nil
      end

      # @return [Culet::Retention::Analysis]
      def look(source, **live)
        asked = { content: content?, duplicates: options.fetch(:duplicates, false), class_name: options[:class],
                  address: options[:path]&.hex }
        dump = source.is_a?(String)
        name = dump ? source : "process #{source} (#{Processes::Identity.new(source).title})"
        read = Culet::Retention::Reading.method(dump ? :of_dump : :of_process)
        Culet::Retention::Analysis.new(read.call(source, **asked, **live), name: name)
      end

      def content? = options.fetch(:content, false)

      def run(command)
        process = nil
        analysis = launch(command, preload: false) do |path|
          process = Culet::Agent::Command.new(command: command, program: path, notes: err,
                                              redirections: redirections) do |pid|
            write_snapshot(pid)
            look(pid)
          end
          process.call
        end
        write_page(analysis)
        deliver(render([analysis]), secret: content?)
        ended(process.status)
      end

      def write_files(result, source)
        write_page(result.is_a?(Culet::Retention::Growth) ? result.analysis : result)
        write_snapshot(source)
      end

      def write_page(analysis)
        write_file(options[:html], Culet::Retain::Html.new(analysis).to_s, secret: content?) if options[:html]
      end

      def write_snapshot(source)
        path = options[:heapsnapshot] or return
        write = Culet::Retention::Reading.method("heapsnapshot_of_#{source.is_a?(String) ? "dump" : "process"}")
        AtomicFile.open(path, secret: content?) { |io| write.call(source, io, content: content?) }
        err.puts("culet: wrote #{path}")
      end

      def render(results)
        if options[:json]
          documents = results.map { |one| document(one) }
          return JSON.generate(documents.size == 1 ? documents.first : { "processes" => documents })
        end

        fitted { results.map { |one| table(one).to_s }.join("\n") }
      end

      def document(result)
        growth = result if result.is_a?(Culet::Retention::Growth)
        Culet::Retain::Document.new(growth ? growth.analysis : result, top: options[:top], growth: growth).to_h
      end

      def table(result)
        shared = { top: options[:top], classes: options.fetch(:classes, false), color: color? }
        return Culet::Retain::GrowthTable.new(result, **shared) if result.is_a?(Culet::Retention::Growth)

        Culet::Retain::Table.new(result, by: options.fetch(:by, :holder), **shared)
      end
    end
  end
end
