# frozen_string_literal: true

require "tmpdir"
require "culet/model/statistics"
require "culet/scope/reader"
require "culet/system/processes"
require "culet/system/ruby_options"
require "culet/tools/compare"
require_relative "command"

# A program as it is, what culet explain advises, and the program with each of the first remedies.
class PredictionTrial
  START_SECONDS = 180
  SAMPLE_SECONDS = 0.5
  GRACE_SECONDS = 10
  # For the first major collection of each worker, and between two looks at their counts.
  COLLECTION_SECONDS = 120
  COLLECTION_TICK = 3
  NEAR_BYTES = 5_000_000
  NEAR_SHARE = 0.2
  # Of a hit: what the user sets in the environment.
  ASSIGNMENT = /\A[A-Z_]+=\S+\z/

  # @param options [Hash] of bench/explain/predictions
  def initialize(program, **options)
    @program = program
    @options = options
  end

  # @return [Hash{String => Object}] the record
  def call
    document = nil
    levels = Array.new(@options[:runs]) { |run| level({}, []) { |pid| run.zero? ? document = explain(pid) : nil } }
    before = Culet::Statistics.median(levels)
    remedies = document["remedies"].reject { |one| one["name"] == "code" }.first(@options[:remedies])
    { "program" => @program.name, "level_bytes" => before, "levels" => levels,
      **document.slice("verdict", "total_bytes", "others"),
      "remedies" => remedies.map { |one| compare(one, before) } }
  rescue RuntimeError, Culet::Error => e
    { "program" => @program.name, "problem" => e.message }
  end

  private

  def compare(remedy, before)
    environment, lines = application(remedy)
    return remedy.merge("outcome" => "not applied") unless environment

    levels = Array.new(@options[:runs]) { level(environment, lines) }
    saved = before - Culet::Statistics.median(levels)
    off = (remedy["saves_bytes"] - saved).abs
    hit = off <= NEAR_BYTES || off <= NEAR_SHARE * saved.abs
    remedy.merge("saved_bytes" => saved, "levels" => levels, "outcome" => hit ? "hit" : "miss")
  end

  # @return [Array(Hash, Array<String>), nil] variables, and lines of a configuration; nil: no machine can apply it
  def application(remedy)
    line = remedy["line"]
    case line
    when "culet run -- COMMAND" then [Culet::Allocators.parse("culet").environment({}), []]
    when /\Aunset / then [line.split.drop(1).to_h { |name| [name, nil] }, []]
    when Culet::RubyOptions.advice("auto") then [{ "RUBYOPT" => "-r#{Culet::RubyOptions.file("auto")}" }, []]
    when ASSIGNMENT then [[line.split("=", 2)].to_h, []]
    else @program.line?(line) ? [{}, [line[/\A[^(]+/].strip]] : nil
    end
  end

  # @yieldparam pid [Integer] while the level is measured
  # @return [Numeric] bytes of all processes, the mean over the time
  def level(environment, lines)
    run(environment, lines) do |child, _, folder|
      watch = Thread.new { yield(child.pid) if block_given? }
      watch.report_on_exception = false # `value` raises it
      sample(child, folder).tap { watch.value }
    end
  end

  # @yieldparam child [Culet::Benchmark::Child] the program, which has settled under its load
  # @yieldparam load [PredictionLoad::Paced, nil]
  # @yieldparam folder [String] of the program's files
  # @return [Object] the block's value
  def run(environment, lines)
    Dir.mktmpdir("culet-predictions") do |folder|
      port = Culet::Compare::LoadTarget.free_port
      load = @program.load.call(port)
      child = start(folder, port, environment.merge(load&.environment.to_h), lines)
      Bench.await_server(child, START_SECONDS) { load.nil? || load.ready? }
      load&.start
      sleep(@options[:settle])
      await_collections(child)
      yield child, load, folder
    ensure
      load&.stop
      child&.stop(grace_seconds: GRACE_SECONDS)
    end
  end

  # What a worker copies at its first major collection it shares until then.
  def await_collections(child)
    Bench.await(COLLECTION_SECONDS) do
      parent, *workers = Culet::Processes::Tree.new(child.pid).pids.map do |pid|
        Culet::Scope::Reader.new(pid, chunks: 0, mode: :live).snapshot.ruby&.major_gcs.to_i
      end
      workers.all? { |count| count > parent } || (sleep(COLLECTION_TICK) && false)
    end
  end

  def start(folder, port, environment, lines)
    base = ENV.to_h.reject { |name, _| name.match?(/\A(?:LD_PRELOAD|MALLOC_|GLIBC_|RUBY|CULET_|BUNDLE)/) }
    own = { "PORT" => port.to_s, "CULET_WORKLOAD_DIR" => folder, "RUBYLIB" => "#{Bench::ROOT}/lib" }
    configure(folder, own, lines)
    all = base.merge(@program.environment, own, environment)
    command = [*@program.command, *(["-C", "#{folder}/config/puma.rb"] if @program.folder)]
    Culet::Benchmark::Child.new(command: command, environment: all.compact, directory: @program.folder || folder)
  end

  def configure(folder, own, lines)
    if @program.configuration
      Dir.mkdir("#{folder}/config")
      File.write("#{folder}/config/puma.rb", [@program.configuration, *lines].join("\n"))
    elsif lines.any?
      own["PREDICTION_LINES"] = "#{folder}/lines.rb"
      File.write(own["PREDICTION_LINES"], lines.join("\n"))
    end
  end

  # Of a program that does the same over and over, all rounds that begin in the time.
  def sample(child, folder)
    await_round(child, folder)
    samples = []
    started = Culet::Clock.now
    await_round(child, folder) { samples << pss(child) } while Culet::Clock.now < started + @options[:for]
    samples.sum / samples.size
  end

  # @yield until the end of a round; once, where the program has none
  def await_round(child, folder)
    done = File.join(folder, "done")
    before = round(done)
    loop do
      raise "the program ended: #{child.diagnostic}" if child.wait(SAMPLE_SECONDS)

      yield if block_given?
      break if before.nil? || round(done) != before
    end
  end

  def round(file) = (File.read(file) if File.exist?(file))

  def pss(child) = Culet::Processes::Tree.new(child.pid).pids.sum { |pid| Culet::Processes::Memory.pss_bytes(pid).to_i }

  def explain(pid) = ExplainCommand.call(pid, seconds: @options[:for]).first
end
