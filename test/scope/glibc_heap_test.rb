# frozen_string_literal: true

require_relative "target_helper"

# The figures of a Ruby process on glibc's allocator are malloc's own, to the byte.
class ScopeGlibcHeapTest < Minitest::Test
  include TargetHelper

  FREEZE = File.join(TARGETS, "freeze.c")

  # Threads fill arrays with strings and hashes of all sizes and drop most; then all rest.
  PROGRAM = <<~'RUBY'
    require "fiddle"
    threads, count, library = ARGV
    freeze_now = Fiddle::Function.new(Fiddle.dlopen(library)["freeze_now"], [], Fiddle::TYPE_INT)
    ready = Queue.new
    kept = Array.new(threads.to_i) do |seed|
      Thread.new do
        random = Random.new(seed)
        held = []
        count.to_i.times do |i|
          held << "x" * (i % 500 == 0 ? random.rand(400_000) : random.rand(20..3000))
          held << Array.new(random.rand(40)) { |n| [n.to_s] } if i % 10 == 0
          held.delete_at(random.rand(held.size)) if random.rand < 0.7
        end
        ready << held
        sleep
      end
    end
    kept.size.times { ready.pop }
    GC.start
    GC.disable
    freeze_now.call
  RUBY

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
    with_library do |library|
      with_frozen("ruby", "-e", PROGRAM, threads, count, library, env: env) do |pid, lines, _|
        figures = lines.first.split.map(&:to_i)
        %i[sliced stopped live].each { |mode| assert_figures(figures, read(pid, mode: mode), mode) }
      end
    end
  end

  def assert_figures(figures, snapshot, mode)
    malloc = snapshot.malloc.to_h
    used, free, large, large_bytes, fastbins = figures
    assert_equal used, malloc["used_bytes"] + malloc["tcache_bytes"], mode
    assert_equal free, malloc["free_resident_bytes"] + malloc["free_returned_bytes"] - malloc["tcache_bytes"], mode
    assert_equal [large, large_bytes, fastbins], malloc.values_at("mmapped_chunks", "mmapped_bytes", "fastbin_bytes"), mode
    assert_empty snapshot.problems, mode
    assert_whole snapshot
  end

  def with_library
    in_directory do |directory|
      library = File.join(directory, "freeze.so")
      _, err, status = run_program("cc", "-shared", "-fPIC", "-O1", "-o", library, FREEZE)
      assert_equal [true, ""], [status.success?, err]
      yield library
    end
  end
end
