# frozen_string_literal: true

require "json"
require "net/http"
require "yaml"

# A Prometheus of its own that scrapes one target, as fleet/prometheus.yml says, but each second.
class PrometheusServer
  # @return [Integer]
  attr_reader :port

  # @param program [String] its path
  # @param directory [String] for its files
  # @param target [String] HOST:PORT
  # @param port [Integer] its own
  def initialize(program, directory, target:, port:)
    @port = port
    fleet = File.expand_path("../../fleet", __dir__)
    settings = YAML.load_file(File.join(fleet, "prometheus.yml"))
    settings["global"] = { "scrape_interval" => "1s", "evaluation_interval" => "1s" }
    settings["rule_files"] = [File.join(fleet, "alerts.yml")]
    settings["scrape_configs"].each { |job| job["static_configs"] = [{ "targets" => [target] }] }
    File.write(File.join(directory, "prometheus.yml"), settings.to_yaml)
    @log = File.join(directory, "log")
    @pid = Process.spawn(program, "--config.file=#{directory}/prometheus.yml", "--storage.tsdb.path=#{directory}/data",
                         "--web.listen-address=127.0.0.1:#{port}", in: File::NULL, out: @log, err: @log, pgroup: true)
  end

  # @param expression [String]
  # @return [Array<Hash>] "metric" and "value" of each series now
  # @raise [RuntimeError] for an expression that is wrong
  def query(expression)
    answer = get("/api/v1/query?#{URI.encode_www_form(query: expression)}")
    raise "#{expression}: #{answer["error"]}" unless answer["status"] == "success"

    answer.fetch("data").fetch("result")
  end

  # @param path [String] of its interface
  # @return [Hash]
  def get(path) = JSON.parse(Net::HTTP.get(URI("http://127.0.0.1:#{@port}#{path}")))

  # @return [Boolean] whether it answers
  def ready?
    Net::HTTP.get_response(URI("http://127.0.0.1:#{@port}/-/ready")).code == "200"
  rescue SystemCallError, EOFError
    false
  end

  # @return [String] what it wrote
  def log = File.read(@log)

  def stop
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
  end
end
