# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/compare"

# Every built-in workload at a tiny scale: runs, ends well, says nothing.
class WorkloadsTest < Minitest::Test
  Workload = Culet::Compare::Workload
  PROGRAMS = Workload::BUILT_IN.reject { |_, (_, server, _)| server }.keys

  PROGRAMS.each do |name|
    define_method("test_#{name}") do
      out, err, status = run_program(RbConfig.ruby, "-w", path(name), env: NEUTRAL.merge("CULET_SCALE" => "0.01"))
      assert status.success?, err
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
    out, err, status = run_culet("compare", *names, "--scale", "0.02", "--runs", "1", "--allocators", "glibc,jemalloc", "--json")
    assert status.success?, err
    document = JSON.parse(out)
    assert_empty document["excluded"]
    assert_equal names.product(%w[glibc jemalloc]), document["results"].map { |result| result.values_at("workload", "allocator") }
  end

  # Tens of gems, some of which are compiled: minutes the first time.
  def test_rails
    workload = Workload.built_in("rails")
    skip "the gems of the rails workload are not installed yet; CULET_TEST_ALL=1 installs them" if workload.unprepared? && !all_tests?

    out, err, status = run_program(*culet_command, "compare", "rails", "--scale", "0.1", "--runs", "1", "--duration", "1",
                                   "--allocators", "glibc", "--json", patience: 1_800)
    assert status.success?, err
    document = JSON.parse(out)
    assert_empty document["excluded"]
    assert_operator document["results"].first["summary"]["requests_per_second"]["median"], :>, 5
  end

  private

  def path(name) = File.join(Workload::DIRECTORY, "#{name}.rb")
end
