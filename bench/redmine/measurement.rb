# frozen_string_literal: true

require_relative "server_run"

# The contenders in turn, in an order shuffled for each round.
class Measurement
  # Label to key, unit and factor. Of malloc and Ruby: pages per worker that existed before the fork, and new ones.
  METRICS = {
    "RSS" => ["rss_bytes", "MB", 1e-6], "PSS" => ["pss_bytes", "MB", 1e-6],
    "private dirty" => ["private_dirty_bytes", "MB", 1e-6],
    "malloc shared" => ["other_shared_bytes", "MB", 1e-6], "malloc copied" => ["other_copied_bytes", "MB", 1e-6],
    "malloc gone" => ["other_gone_bytes", "MB", 1e-6], "malloc new" => ["other_new_bytes", "MB", 1e-6],
    "Ruby shared" => ["ruby_shared_bytes", "MB", 1e-6], "Ruby copied" => ["ruby_copied_bytes", "MB", 1e-6],
    "Ruby new" => ["ruby_new_bytes", "MB", 1e-6],
    "warm-up" => ["warmup_seconds", "ms", 1e3], "peak RSS at fork" => ["fork_peak_bytes", "MB", 1e-6],
    "requests per second" => ["requests_per_second", "1/s", 1],
    "CPU time per request" => ["cpu_per_request_seconds", "ms", 1e3]
  }.freeze

  # @param options [Hash] :runs, :requests, :connections
  def initialize(contenders, options)
    @contenders = contenders
    @options = options
    @results = Hash.new { |results, name| results[name] = [] }
    @failures = {}
  end

  def call
    random = Random.new(1)
    @options.fetch(:runs).times do |number|
      @contenders.shuffle(random: random).each do |contender|
        run(contender, number + 1) unless @failures.key?(contender.name)
      end
    end
    self
  end

  def rows
    done.flat_map do |contender|
      Bench::Row.of_runs(@results[contender.name], METRICS, subject: contender.subject,
                                                            contender: contender.choice.spec)
    end
  end

  # @return [String] the medians as a Markdown table
  def to_s
    [Bench::Table.new(rows).by_metric,
     *@failures.map { |name, reason| "#{name} is left out: #{reason}\n" }].join
  end

  private

  def done = @contenders.select { |contender| @results.key?(contender.name) && !@failures.key?(contender.name) }

  def run(contender, number)
    figures = ServerRun.new(contender: contender, **@options.slice(:requests, :connections)).call
    @results[contender.name] << figures
    warn("#{contender.name}, run #{number}: PSS #{figures["pss_bytes"] / 1_000_000} MB, " \
         "#{figures["requests_per_second"]} requests/s, " \
         "served #{figures["served"].join(" + ")}")
  rescue Culet::Error, RuntimeError, SystemCallError, Timeout::Error => e
    @failures[contender.name] = "run #{number}: #{e.message}"
    warn("#{contender.name}, run #{number}: #{e.message}")
  end
end
