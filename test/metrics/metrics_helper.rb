# frozen_string_literal: true

require "test_helper"
require "culet/system/executables"
require "culet/tools/compare/load_target"
require "net/http"

# Programs whose metrics are read.
module MetricsHelper
  # One sample of a text.
  Sample = Struct.new(:name, :labels, :value)

  # Whether this kernel has /proc/pressure is left open.
  FLAGS = ["-w", "-I#{TestHelper::ROOT}/lib"].freeze

  module_function

  # @param text [String] in one of the formats
  # @return [Array<Sample>]
  # @raise [RuntimeError] for a line that is none of the format
  def parse(text)
    text.each_line(chomp: true).reject { |line| line.start_with?("# ") }.map do |line|
      match = /\A([a-z_:]+)(?:\{(.*)\})? (\S+)\z/.match(line) or raise "not a sample: #{line}"
      labels = match[2].to_s.scan(/(\w+)="((?:[^"\\]|\\.)*)"/).to_h
      Sample.new(match[1], labels, Float(match[3]))
    end
  end

  # @param labels [Hash{Symbol => String}] that it must have
  # @return [Array<Sample>]
  def select(samples, name, **labels)
    samples.select { |one| one.name == name && labels.all? { |label, value| one.labels[label.to_s] == value.to_s } }
  end

  # @return [Float] of exactly one sample
  def value(samples, name, **labels)
    found = select(samples, name, **labels)
    raise "#{found.size} samples of #{name} #{labels}" unless found.size == 1

    found.first.value
  end

  # @return [Array<String>] the processes that have samples
  def pids(samples) = samples.filter_map { |one| one.labels["pid"] }.uniq

  # Runs Ruby code with culet/metrics in a process of its own.
  #
  # @return [String] what it printed
  def run_ruby(code, env: {})
    out, err = assert_success(RbConfig.ruby, *FLAGS, "-rculet/metrics", "-e", code, env: TestHelper::NEUTRAL.merge(env))
    assert_empty err
    out
  end

  # @return [Net::HTTPResponse]
  def get(port, path = "/metrics", headers = {})
    Net::HTTP.start("127.0.0.1", port, open_timeout: 60, read_timeout: 60) { |http| http.get(path, headers) }
  end

  def free_port = Culet::Compare::LoadTarget.free_port

  # @return [String, nil] the path of a program of Debian's package prometheus
  def program(name) = Culet::Executables.find(name, search: "#{ENV.fetch("PATH")}:#{TestHelper::ROOT}/tmp/prometheus/usr/bin")

  # @return [String] the path
  # @raise [Minitest::Skip] where it is not installed
  def program_or_skip(name)
    program(name) || skip("there is no #{name}; run `bin/setup`")
  end
end
