# frozen_string_literal: true

require_relative "exact_figures"
require_relative "target_helper"

# The figures of a Ruby process on glibc's allocator are malloc's own, to the byte.
class ScopeGlibcHeapTest < Minitest::Test
  include TargetHelper
  include ExactFigures

  FREEZE = File.join(TARGETS, "freeze.c")

  PROGRAM = File.join(TARGETS, "threads.rb")

  def test_a_few_threads
    assert_exact(4, 8000)
  end

  def test_twenty_threads
    assert_exact(20, 2000)
  end

  def test_gigabytes
    skip "bin/test --all" unless ENV["CULET_TEST_ALL"]

    assert_exact(20, 60_000)
  end

  def test_one_arena
    assert_exact(8, 2000, "MALLOC_ARENA_MAX" => "1")
  end

  private

  def assert_exact(threads, count, env = {})
    library = TestHelper.build("-shared", "-fPIC", "-O1", FREEZE)
    with_frozen("ruby", PROGRAM, threads, count, library, env: env) do |pid, lines, _|
      figures = figures_in(lines.first)
      %i[sliced stopped live].each do |mode|
        snapshot = read(pid, mode: mode)
        assert_figures(figures, snapshot.malloc.to_h, snapshot.problems, mode)
        assert_whole snapshot
      end
    end
  end
end
