# frozen_string_literal: true

require "json"
require "optparse"

module Bench
  # bench/run's words.
  class CommandLine
    # @param words [Array<String>]
    def initialize(words, out: $stdout, err: $stderr)
      @words = words
      @out = out
      @err = err
      @options = { build: Build::FOLDER }
    end

    # @return [Integer] the exit status: 0 measured (whatever the verdicts), 1 failed, 2 wrong usage
    def run
      names = parser.parse(@words)
      return list if @options[:list]

      measure(probes(names))
      0
    rescue OptionParser::ParseError, Culet::UsageError => e
      fail_with(2, e.message)
    rescue Culet::Error => e
      fail_with(1, e.message)
    rescue Interrupt
      fail_with(1, "interrupted; files that were asked for have the probes that were through")
    end

    private

    def fail_with(status, message)
      @err.puts "bench: #{message}"
      status
    end

    def parser
      OptionParser.new do |parser|
        parser.banner = "usage: bench/run [PROBE|GROUP ...] [options]"
        parser.separator "\nRuns the probes (all of them unless named) under every allocator in turns and prints medians beside the goals.\n\n"
        parser.on("--allocators A,B", Array, "names and settings as of `culet run`, or libraries as PATH or NAME=PATH (#{Contender::USUAL.join(",")})") { |list| @options[:allocators] = list }
        parser.on("--runs N", Integer, "runs of each allocator (each probe has a number of its own)") { |number| @options[:runs] = positive(number) }
        parser.on("--json FILE", "write every run's figures to FILE") { |file| @options[:json] = file }
        parser.on("--markdown FILE", "write the tables to FILE as well") { |file| @options[:markdown] = file }
        parser.on("--instructions", "count instructions by callgrind instead (probes of the group cpu)") { @options[:instructions] = true }
        parser.on("--build DIR", "where the C probes are built (tmp/bench)") { |folder| @options[:build] = folder }
        parser.on("--tiny", "smallest parameters: shows that all works, measures nothing") { @options[:tiny] = true }
        parser.on("--list", "name the probes and end") { @options[:list] = true }
        parser.on("-h", "--help", "this text") { @options[:list] = :help }
        parser.separator "\nGroups: #{Catalogue::GROUPS.keys.join(", ")}\n\nExamples:\n  bench/run idle cow\n  bench/run queue --allocators mimalloc,culet --runs 9\n  " \
                         "bench/run cpu --allocators before=old/libculet.so,culet"
      end
    end

    def positive(number)
      raise OptionParser::InvalidArgument, "#{number}; at least one run is needed" unless number.positive?

      number
    end

    def list
      return @out.puts(parser.help) || 0 if @options[:list] == :help

      Catalogue.probes.each { |probe| @out.puts format("%-18s %-9s %s", probe.name, probe.group, probe.about) }
      0
    end

    def probes(names)
      return Catalogue.probes if names.empty?

      names.flat_map do |name|
        found = [Catalogue.find(name)].compact
        found = Catalogue.probes.select { |probe| probe.group.to_s == name } if found.empty?
        raise Culet::UsageError, "there is no probe or group #{name}; `bench/run --list` names them" if found.empty?

        found
      end.uniq
    end

    # Those that were asked for must be there; of the usual ones, those that are.
    def contenders
      return @options[:allocators].map { |text| Contender.new(text) } if @options[:allocators]

      Contender::USUAL.filter_map do |text|
        Contender.new(text)
      rescue Culet::Error => e
        raise if text == "culet"

        @err.puts "bench: without #{text}: #{e.message}"
      end
    end

    def measure(probes)
      taking_part = contenders
      built = Build.call(@options[:build])
      @out.puts @options[:instructions] ? count(probes, taking_part, built) : time(probes, taking_part, built)
    end

    # Writes the files after each probe: the last may take long, and whoever ends it keeps what is there.
    #
    # @return [String] the report
    def time(probes, taking_part, built)
      session = Session.new(contenders: taking_part, built: built, runs: @options[:runs], tiny: @options[:tiny], progress: method(:say))
      results = []
      probes.each do |probe|
        results << session.measure(probe)
        write({ "results" => results.map(&:to_h) }, Report.new(results, taking_part).to_s)
      end
      Report.new(results, taking_part).to_s
    end

    def write(document, report)
      Culet::AtomicFile.write(@options[:json], "#{JSON.pretty_generate(document)}\n") if @options[:json]
      Culet::AtomicFile.write(@options[:markdown], report) if @options[:markdown]
    end

    def count(probes, taking_part, built)
      counter = Instructions.new(built: built)
      able = probes.select { |probe| counter.able?(probe) }
      raise Culet::UsageError, "none of these probes can be counted; those of the group cpu can" if able.empty?

      counts = {}
      able.each do |probe|
        counts[probe] = taking_part.to_h { |contender| [contender.name, counted(counter, probe, contender)] }.compact
        write({ "instructions_per_operation" => counts.transform_keys(&:name) }, InstructionReport.new(counts, taking_part).to_s)
      end
      InstructionReport.new(counts, taking_part).to_s
    end

    # @return [Float, nil] nil, with a word about it, for an allocator that does not get through
    def counted(counter, probe, contender)
      say("#{probe.name} #{contender.name}")
      counter.per_operation(probe, contender)
    rescue Culet::Error => e
      raise if contender.culet?

      say("without #{contender.name}: #{e.message}")
    end

    def say(text)
      @err.puts "bench: #{text}"
    end
  end
end
