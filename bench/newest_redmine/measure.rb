# frozen_string_literal: true

# Redmine under Puma on several allocators in turns, and what each of them holds after the same work.
#
#   ruby measure.rb MANNER [--allocators A,B] [--runs N] [--requests N] [--connections N] [--json FILE]
#   ruby measure.rb --contenders A/MANNER,B/MANNER [--runs N] ...
#
# MANNER: single, cluster, warm, plugin, requests or steps=NAME+NAME, see puma.rb. With --contenders each has its own. To be run in
# the root of bench/newest; bench/newest-redmine does.

require "json"
require "optparse"
require "tmpdir"
require_relative "../../lib/culet/tools/compare"
require_relative "client"
require_relative "contender"
require_relative "pages"

# One server from its start to its end.
class Turn
  START_SECONDS = 300
  GRACE_SECONDS = 20
  WORKERS = 3 # of puma.rb
  # For Puma's plugins, of culet and of this directory: the same for all.
  LIBRARIES = [File.expand_path("../../lib", __dir__), __dir__].join(":")

  # @param contender [Contender]
  # @param requests [Integer]
  # @param connections [Integer]
  def initialize(contender:, requests:, connections:)
    @contender = contender
    @choice = contender.choice
    @requests = requests
    @connections = connections
    @port = Culet::Compare::LoadTarget.free_port
  end

  # @return [Hash{String => Numeric}] the figures
  # @raise [RuntimeError, Culet::Error] when the server fails
  def call
    Dir.mktmpdir do |directory|
      @snapshot = File.join(directory, "pages")
      @warmup = File.join(directory, "warmup")
      @child = Culet::Compare::Child.new(command: ["puma", "-C", "#{__dir__}/puma.rb", "#{__dir__}/config.ru"], environment: environment)
      await
      serve
    ensure
      @child&.stop(grace_seconds: GRACE_SECONDS)
    end
  end

  private

  def environment
    base = ENV.to_h
    pages = @contender.single? ? {} : { "MEASURED_PAGES" => @snapshot, "MEASURED_WARMUP" => @warmup }
    base.merge(@choice.environment(base, isolated: true), "RUBYLIB" => LIBRARIES, "MEASURED_MANNER" => @contender.manner, "PORT" => @port.to_s, **pages).compact
  end

  def await
    target = Culet::Compare::LoadTarget.local(@port)
    until target.answers?
      raise "the server ended before it answered: #{@child.diagnostic}" if @child.wait(0.1)
      raise "the server did not answer within #{START_SECONDS} seconds" if @child.age_seconds > START_SECONDS
    end
  end

  def serve
    before = cpu
    client = Client.new(port: @port, requests: @requests, connections: @connections, workers: @contender.single? ? 1 : WORKERS)
    seconds = client.run
    used = cpu - before
    pids = @child.descendants.refresh
    check(pids, client)
    memory = pids.map { |pid| Culet::Processes::Memory.rollup(pid) }
    { "processes" => pids.size, "rss_bytes" => sum(memory, "rss_bytes"), "pss_bytes" => sum(memory, "pss_bytes"),
      "private_dirty_bytes" => sum(memory, "private_dirty_bytes"), "requests_per_second" => (client.served.values.sum / seconds).round(2),
      "cpu_per_request_seconds" => (used / client.served.values.sum).round(5), "served" => client.served.values.sort, **sharing(pids.drop(1)), **warmup }
  end

  # @return [Hash{String => Numeric}] what the warm-up cost, where there was one
  def warmup = File.exist?(@warmup) ? JSON.parse(File.read(@warmup)) : {}

  # A worker that was killed and forked anew has done little, too.
  def check(pids, client)
    serving = pids.size > 1 ? pids.drop(1) : pids
    raise "workers came and went under the load: #{client.served.inspect} served, #{serving.inspect} are there" unless
      client.served.keys.map(&:to_i).sort == serving.sort

    pids.each do |pid|
      names = Culet::Processes::Live.new(pid).mappings.filter_map { |mapping| mapping.path && Culet::Allocators.of_library(mapping.path) }.uniq
      raise "process #{pid} runs on #{names.inspect}, not on #{@choice.name}" unless names == [@choice.name] - ["glibc"]
    end
  end

  def sum(memory, name) = memory.sum { |figures| figures.fetch(name) }

  def cpu = @child.descendants.refresh.sum { |pid| Culet::Processes::Cpu.seconds(pid) || 0.0 }

  # @return [Hash{String => Integer}] the mean of the workers
  def sharing(workers)
    return {} if workers.empty?

    before = Pages.load(@snapshot)
    all = workers.map { |pid| Pages.of(pid).since(before) }
    all.flat_map(&:keys).uniq.sort.to_h { |key| [key, all.sum { |counts| counts[key] } / all.size] }
  end
end

# The contenders in turns, in an order shuffled for each round.
class Measurement
  COLUMNS = { "RSS" => "rss_bytes", "PSS" => "pss_bytes", "private dirty" => "private_dirty_bytes",
              "malloc before fork: shared" => "other_shared_bytes", "copied" => "other_copied_bytes", "gone" => "other_gone_bytes",
              "malloc new" => "other_new_bytes", "Ruby shared" => "ruby_shared_bytes", "Ruby copied" => "ruby_copied_bytes",
              "Ruby new" => "ruby_new_bytes", "warm-up ms" => "warmup_seconds", "peak RSS at fork" => "fork_peak_bytes",
              "req/s" => "requests_per_second", "CPU ms/req" => "cpu_per_request_seconds" }.freeze

  # @param contenders [Array<Contender>]
  # @param options [Hash] :runs, :requests, :connections
  def initialize(contenders, options)
    @contenders = contenders
    @options = options
    @results = Hash.new { |results, name| results[name] = [] }
    @failures = {}
  end

  # @return [self]
  def call
    random = Random.new(1)
    @options.fetch(:runs).times do |number|
      @contenders.shuffle(random: random).each { |contender| turn(contender, number + 1) unless @failures.key?(contender.name) }
    end
    self
  end

  # @return [Hash] all figures of all runs
  def to_h = { "contenders" => @contenders.map(&:name), "ruby" => RUBY_DESCRIPTION, "options" => @options, "results" => @results, "failures" => @failures }

  # @return [String] the medians as a Markdown table, in MB
  def to_s
    columns = COLUMNS.select { |_, key| @results.values.flatten.any? { |figures| figures.key?(key) } }
    lines = [["contender", *columns.keys], ["---"] * (columns.size + 1)]
    done.each { |contender| lines << [contender.name, *columns.values.map { |key| shown(contender, key) }] }
    table = lines.map { |cells| "| #{cells.join(" | ")} |" }
    [*table, *@failures.map { |name, reason| "#{name} is left out: #{reason}" }].join("\n")
  end

  private

  def done = @contenders.select { |contender| @results.key?(contender.name) && !@failures.key?(contender.name) }

  def turn(contender, number)
    figures = Turn.new(contender: contender, **@options.slice(:requests, :connections)).call
    @results[contender.name] << figures
    warn("#{contender.name}, run #{number}: PSS #{figures["pss_bytes"] / 1_000_000} MB, #{figures["requests_per_second"]} requests/s, " \
         "served #{figures["served"].join(" + ")}")
  rescue Culet::Error, RuntimeError, SystemCallError, Timeout::Error => e
    @failures[contender.name] = "run #{number}: #{e.message}"
    warn("#{contender.name}, run #{number}: #{e.message}")
  end

  def shown(contender, key)
    values = @results[contender.name].filter_map { |figures| figures[key] }.sort
    return "0" if values.empty?

    middle = values[values.size / 2]
    key.end_with?("_bytes") ? (middle / 1e6).round(1) : (key.end_with?("_seconds") ? (middle * 1e3).round(1) : middle)
  end
end

options = { allocators: %w[glibc glibc:arena_max=2 jemalloc tcmalloc mimalloc culet], runs: 3, requests: 400, connections: 12 }
begin
  OptionParser.new("ruby measure.rb MANNER [options]") do |parser|
    parser.on("--allocators A,B", Array) { |list| options[:allocators] = Culet::Compare::Plan.split_allocators(list.join(",")) }
    parser.on("--contenders A/MANNER,B/MANNER", "instead of MANNER") { |text| options[:contenders] = Contender.parse(text) }
    parser.on("--runs N", Integer) { |number| options[:runs] = number }
    parser.on("--requests N", Integer) { |number| options[:requests] = number }
    parser.on("--connections N", Integer) { |number| options[:connections] = number }
    parser.on("--json FILE") { |file| options[:json] = file }
  end.parse!
  raise OptionParser::MissingArgument, "MANNER, one of those of puma.rb, or --contenders" unless ARGV.size == (options.key?(:contenders) ? 0 : 1)

  options[:contenders] ||= options[:allocators].map { |spec| Contender.new(spec, ARGV.first) }
  raise OptionParser::InvalidArgument, "--runs, --requests and --connections are at least 1" unless options.values_at(:runs, :requests, :connections).all?(&:positive?)
rescue OptionParser::ParseError, Culet::UsageError => e
  warn("measure: #{e.message}")
  exit 2
end
measurement = Measurement.new(options[:contenders], options.slice(:runs, :requests, :connections)).call
puts measurement
File.write(options[:json], JSON.generate(measurement.to_h)) if options[:json]
