# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "compare/sampled"

# Every built-in workload at a tiny scale: runs, ends well, says nothing.
class WorkloadsTest < Minitest::Test
  Workload = Culet::Compare::Workload
  PROGRAMS = Workload::BUILT_IN.reject { |_, (_, server, _)| server }.keys

  PROGRAMS.each do |name|
    define_method("test_#{name}") do
      skip_unless_all
      out, err = assert_success(RbConfig.ruby, "-w", path(name), env: NEUTRAL.merge("CULET_SCALE" => "0.01"))
      assert_empty out
      assert_empty err
    end
  end

  def test_each_program_is_there_and_says_where_its_shape_comes_from
    Workload.names.each do |name|
      header = File.read(path(name)).lines.drop(1).join[/\A\n(#.*\n)+/]
      assert_match(/published case/, header, name)
      assert_match(/CULET_SCALE/, header, name)
    end
  end

  def test_all_files_are_known
    files = Dir[File.join(Workload::DIRECTORY, "*.rb")].map { |file| File.basename(file, ".rb") }
    assert_equal Workload.names.sort, files.sort
  end

  def test_comparison_of_the_programs_at_a_tiny_scale
    names = PROGRAMS - %w[boot]
    out, = assert_success(*Sampled.command(culet_command), "compare", *names, "--scale", "0.02", "--runs", "1", "--allocators", "glibc,jemalloc", "--json",
                          env: Sampled::AT_THE_END)
    document = JSON.parse(out)
    assert_empty document["excluded"]
    assert_equal names.product(%w[glibc jemalloc]), document["results"].map { |result| result.values_at("workload", "allocator") }
  end

  def test_rails
    skip_unless_all
    run = run_of_rails("rails")
    assert_equal 1, run["samples"].map { |sample| sample["processes"] }.max
  end

  def test_cluster
    skip_unless_all
    assert_cluster "cluster"
  end

  def test_cluster_warm
    assert_cluster "cluster-warm"
  end

  # Needs none of the gems.
  def test_the_warm_up_ages_survivors_and_returns_what_is_free
    out, err, status = run_program(RbConfig.ruby, "-w", "-r", File.join(Workload::DIRECTORY, "rails/warmup.rb"), "-robjspace", "-e", <<~RUBY, env: NEUTRAL)
      resident = -> { File.read("/proc/self/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) }
      require "etc"
      kept = []
      dropped = Array.new(100_000) { |number| kept << "x" * 600 if (number % 100).zero?; "y" * 600 }
      before = resident.call
      dropped = nil
      Warmup.new.call
      puts ObjectSpace.dump(kept.last).include?('"old":true'), before - resident.call
    RUBY
    assert status.success?, err
    assert_empty err
    old, returned = out.split
    assert_equal "true", old
    assert_operator returned.to_i, :>, 40_000_000
  end

  private

  def assert_cluster(name)
    run = run_of_rails(name)
    assert_equal 4, run["samples"].map { |sample| sample["processes"] }.max
    assert_operator run["loaded_pss_bytes"], :<, run["loaded_rss_bytes"] * 0.8, "four processes share what was loaded"
  end

  # Tens of gems, some of which are compiled: minutes the first time.
  #
  # @return [Hash] the run's figures
  def run_of_rails(name)
    workload = Workload.built_in(name)
    skip "the gems of the rails workload are not installed yet; CULET_TEST_ALL=1 installs them" if workload.unprepared? && !all_tests?

    out, = assert_success(*culet_command, "compare", name, "--scale", "0.05", "--runs", "1", "--duration", "5",
                          "--allocators", "glibc:trim", "--json", patience: 1_800)
    document = JSON.parse(out)
    assert_empty document["excluded"]
    result = document["results"].first
    assert_operator result["summary"]["requests_per_second"]["median"], :>, 0
    result["runs"].first
  end

  def path(name) = File.join(Workload::DIRECTORY, "#{name}.rb")
end
