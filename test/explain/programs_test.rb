# frozen_string_literal: true

require "test_helper"
require "explain/programs"
require "json"

# The programs of known cause start, become ready, and are what they say to be: by figures of Ruby, malloc and the kernel that
# `culet explain` does not read.
class ExplainProgramsTest < Minitest::Test
  FIRST = %w[ruby_leak/array_of_rows native_leak/forked_extension malloc_free/fragments].freeze
  MEGABYTE = 1_000_000.0
  # What a trend is taken of, in seconds; to show that there is none, the table of a cache must have its size.
  TREND_SECONDS = 6
  STEADY_SECONDS = 16
  # Parts of what a head says that must be there: of a peak, and of growth, which is slower on a busy machine.
  ENOUGH = 0.5
  GROWS = 0.25
  # Of the growth of native memory, what objects may have.
  LITTLE = 0.2
  # MB a minute of a program without a leak, at most.
  STEADY = 8
  # What is checked after collections; they would change the rest.
  COLLECTED = %w[growth none].freeze

  ExplainPrograms.all.each do |program|
    define_method("test_#{program.name.tr("/", "_")}") do
      skip_unless_all unless FIRST.include?(program.name)
      install_gems if program.gems?
      assert_as_said(program)
    end
  end

  def test_six_of_each_kind_or_more
    kinds = ExplainPrograms.all.group_by(&:kind).except("limit")
    assert_equal 8, kinds.size
    kinds.each { |kind, programs| assert_operator programs.size, :>=, 6, kind }
  end

  def test_each_says_what_is_known
    ExplainPrograms.all.each do |program|
      assert_match(/\A[a-z].+[^.]\z/, program.head["says"], program.name)
      refute_nil program.head["shape"], program.name
      refute_nil program.line, program.name unless program.kind == "none"
      assert_equal program.kind, program.verdicts("glibc").first
    end
  end

  private

  def install_gems
    bundle = ExplainPrograms.bundle
    bundle.install(log: $stderr) unless bundle.installed?
  rescue Culet::Benchmark::Exclusion => e
    skip "#{e.message}; #{e.remedy}"
  end

  def assert_as_said(program)
    Dir.mktmpdir do |folder|
      facts = File.join(folder, "facts")
      env = { "PROGRAM_FACTS" => facts, "PROGRAM_COLLECT" => ("no" unless checks(program).intersect?(COLLECTED)) }
      log = File.join(folder, "log")
      program.run(env: env, err: log) do |pid|
        @program = program
        @facts = facts
        assert_operator pid, :>, 1
        checks(program).each { |name| send(:"check_#{name}", program.head[name].to_f * MEGABYTE) }
      end
    rescue RuntimeError => e
      flunk "#{e.message}\n#{File.read(log)}"
    end
  end

  # @return [Array<String>] what its head has figures of; of those without a cause, the kind
  def checks(program)
    found = %w[growth mapped peak free free_slots garbage unshared code] & program.head.keys
    found.empty? ? [program.kind] : found
  end

  # By process, its figures since the beginning.
  def figures
    return {} unless File.exist?(@facts)

    File.readlines(@facts).filter_map { |line| JSON.parse(line) if line.end_with?("\n") }.group_by { |one| one["pid"] }
  end

  # @return [Object] what the block returned of the figures, as soon as it is true
  def settle(what)
    assert_settles(-> { "#{@program.name}: #{what}: #{figures.transform_values(&:last)}" }) { yield(figures) }
  end

  # @return [Array(Array<Hash>)] the figures of processes that have been there for so long, from their third on
  def trends(seconds)
    settle("no process is there for long enough") do |all|
      long = all.values.map { |lines| lines.drop(2) }.select { |lines| lines.size > 4 && lines.last["seconds"] - lines.first["seconds"] > seconds }
      long if long.any?
    end
  end

  # @return [Float] MB a minute of the process that grows fastest
  def growth(name, seconds: TREND_SECONDS)
    trends(seconds).map { |lines| (lines.last[name] - lines.first[name]) / (lines.last["seconds"] - lines.first["seconds"]) * 60 / MEGABYTE }.max
  end

  def check_growth(bytes)
    said = bytes / MEGABYTE
    assert_operator growth("in_use_bytes"), :>=, GROWS * said
    if @program.kind == "ruby_leak"
      assert_operator growth("object_bytes"), :>=, GROWS * said
      assert_operator growth("objects"), :>, 0
    else
      assert_operator growth("object_bytes"), :<=, LITTLE * said
    end
  end

  def check_mapped(bytes) = assert_operator(growth("private_bytes"), :>=, GROWS * bytes / MEGABYTE)

  def check_peak(bytes)
    settle("there is no peak") do |all|
      all.each_value.any? do |lines|
        values = lines.map { |line| line["before_bytes"] }
        peak = values.each_index.max_by { |at| values[at] }
        peak && values[peak] - values.drop(peak).min >= ENOUGH * bytes
      end
    end
  end
  alias check_garbage check_peak

  def check_free(bytes) = settle("malloc has too little free memory") { |all| all.each_value.any? { |lines| stays?(lines, "malloc_free_bytes", bytes) } }

  def check_free_slots(bytes) = settle("the heap is not sparse") { |all| all.each_value.any? { |lines| stays?(lines, "free_slot_bytes", bytes) } }

  def check_unshared(bytes) = settle("the workers share") { |all| all.values.count { |lines| stays?(lines, "private_bytes", bytes) } > 1 }

  def check_code(bytes) = settle("there is too little code") { |all| all.each_value.any? { |lines| stays?(lines, "code_bytes", bytes) } }

  # In the last second.
  def stays?(lines, name, bytes) = lines.size > 4 && lines.last(4).all? { |line| line[name].to_i >= bytes }

  def check_none(_)
    most = @program.head.key?("rises") ? Float::INFINITY : STEADY
    assert_operator growth("in_use_bytes", seconds: STEADY_SECONDS), :<=, most
  end

  def check_limit(_)
    limit = @program.head["env"][/CULET_LIMIT=(\d+)MB/, 1].to_i * MEGABYTE
    settle("it is far from the limit") { |all| all.each_value.any? { |lines| stays?(lines, "rss_bytes", 0.85 * limit) } }
  end
end
