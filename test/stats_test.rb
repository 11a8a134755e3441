# frozen_string_literal: true

require "test_helper"
require "culet"
require "culet/allocators"
require "json"

# Culet.stats in real Ruby processes on the preloaded allocator.
class StatsTest < Minitest::Test
  BYTES = %i[mapped_bytes heap_bytes used_bytes free_bytes cached_bytes slab_bytes run_bytes free_resident_bytes
             free_returned_bytes large_bytes descriptor_bytes returned_bytes used_resident_bytes
             unused_resident_bytes].freeze
  COUNTS = %i[segments runs large_blocks purges forks threads arenas].freeze
  CLASS_KEYS = %i[block_bytes slabs used free cached].freeze
  GLIBC_KEYS = %i[heap_bytes used_bytes free_bytes large_blocks large_bytes arenas].freeze

  SEGMENT_BYTES = 4 << 20

  # A heap with blocks of all kinds, some freed.
  WORK = <<~RUBY
    kept = Array.new(30_000) { |i| "x" * (i % 2000) }
    kept.select!.with_index { |_, i| i % 3 > 0 }
    runs = Array.new(8) { "r" * 100_000 }
    large = "l" * (5 << 20)
    GC.start
  RUBY

  def test_every_figure_is_there
    stats, = ask("#{WORK}; tell Culet.stats")
    assert_equal (BYTES + COUNTS + [:classes]).sort, stats.keys.sort
    (BYTES + COUNTS).each do |key|
      assert_kind_of Integer, stats[key], key
      assert_operator stats[key], :>=, 0, key
    end
    refute_empty stats[:classes]
    stats[:classes].each { |each| assert_equal CLASS_KEYS, each.keys }
    sizes = stats[:classes].map { |each| each[:block_bytes] }
    assert_equal sizes.sort.uniq, sizes
  end

  def test_the_figures_add_up
    stats, = ask("#{WORK}; tell Culet.stats")
    assert_equal stats[:mapped_bytes], stats[:heap_bytes] + stats[:large_bytes]
    assert_equal stats[:heap_bytes], stats[:used_bytes] + stats[:free_bytes]
    assert_equal stats[:heap_bytes],
                 stats.values_at(:slab_bytes, :run_bytes, :free_resident_bytes, :free_returned_bytes).sum
    assert_equal stats[:heap_bytes], stats[:segments] * SEGMENT_BYTES
    assert_equal stats[:used_bytes], stats[:run_bytes] + bytes_of(stats, :used)
    assert_equal stats[:cached_bytes], bytes_of(stats, :cached)
    assert_operator stats[:slab_bytes], :>=, bytes_of(stats, :used) + bytes_of(stats, :free) + bytes_of(stats, :cached)
    # What a slab's end wastes is little.
    assert_operator stats[:slab_bytes] * 0.98, :<=, bytes_of(stats, :used) + bytes_of(stats, :free) + bytes_of(stats, :cached)
    assert_operator stats[:runs], :>=, 8
    assert_operator stats[:run_bytes], :>=, 8 * 100_000
    assert_operator stats[:large_blocks], :>=, 1
    assert_operator stats[:large_bytes], :>=, 5 << 20
  end

  # Strings of 1,000 bytes, of which Ruby asks for 1,001.
  def test_a_class_follows_the_program
    before, held, freed, trimmed = ask(<<~RUBY)
      tell Culet.stats
      kept = Array.new(20_000) { "x" * 1000 }
      tell Culet.stats
      kept.clear
      GC.start
      tell Culet.stats
      Fiddle::Function.new(Fiddle::Handle::DEFAULT["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT).call(0)
      tell Culet.stats
    RUBY
    used = [before, held, freed].map { |stats| class_of(stats, 1001)[:used] }
    assert_in_delta used[0] + 20_000, used[1], 200
    assert_operator used[2], :<, used[0] + 400
    assert_operator class_of(held, 1001)[:slabs] - class_of(before, 1001)[:slabs], :>, 20_000 / 64 / 16
    assert_operator trimmed[:purges], :>, before[:purges]
    assert_operator trimmed[:returned_bytes] - before[:returned_bytes], :>, 10 << 20
    assert_operator trimmed[:free_returned_bytes], :>, 10 << 20
  end

  def test_malloc_info_says_the_same
    before, info, after = ask(<<~RUBY)
      #{WORK}
      GC.disable
      c = ->(name, *types, result) { Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], types, result) }
      pointer = Fiddle::TYPE_VOIDP
      open, write, close = c["fopen", pointer, pointer, pointer], c["malloc_info", Fiddle::TYPE_INT, pointer, Fiddle::TYPE_INT],
                           c["fclose", pointer, Fiddle::TYPE_INT]
      before = Culet.stats
      stream = open.call(ARGV.first, "w")
      raise "malloc_info failed" unless write.call(0, stream).zero?
      close.call(stream)
      after = Culet.stats
      tell before
      tell({ text: File.read(ARGV.first) })
      tell after
    RUBY
    compare(figures_of(info.fetch(:text)), flat(before), flat(after))
  end

  def test_a_forked_child_goes_on_counting
    parent, child, grandchild, again = ask(<<~RUBY)
      tell Culet.stats
      $stdout.flush
      Process.wait(fork { tell Culet.stats; $stdout.flush; Process.wait(fork { tell Culet.stats }) })
      tell Culet.stats
    RUBY
    assert_equal [1, 2, 1], [child, grandchild, again].map { |stats| stats[:forks] - parent[:forks] }
    assert_operator child[:used_bytes], :>, parent[:used_bytes] / 2
  end

  def test_threads_that_hold_blocks_are_counted
    alone, together = ask(<<~RUBY)
      tell Culet.stats
      ready, over = Queue.new, Queue.new
      threads = Array.new(5) { Thread.new { kept = "x" * 500; ready << kept.size; over.pop } }
      5.times { ready.pop }
      tell Culet.stats
      5.times { over << 1 }
      threads.each(&:join)
    RUBY
    assert_operator together[:threads] - alone[:threads], :>=, 5
  end

  # Other threads go on while the heap is counted.
  def test_many_threads_may_ask
    results, = ask(<<~RUBY)
      threads = Array.new(4) { Thread.new { Array.new(50) { Array.new(100) { |i| "x" * i * 9 }; Culet.stats } } }
      tell({ all: threads.flat_map(&:value) })
    RUBY
    assert_equal 200, results[:all].size
    results[:all].each { |stats| assert_equal stats[:heap_bytes], stats[:used_bytes] + stats[:free_bytes] }
  end

  # A program that is not Ruby by its name, started by a Ruby on culet: glibc serves it, and is asked.
  def test_a_dormant_library_answers_for_glibc
    directory = new_folder
    program = File.join(directory, "worker")
    FileUtils.cp(File.realpath(RbConfig.ruby), program)
    env = on_culet.merge("CULET_INHERITED" => "1")
    out, = assert_success(program, "-W:no-experimental", "-I#{ROOT}/lib", "-rculet", "-rjson",
                          "-e", "puts JSON.generate([Culet.allocator, Culet.stats])", env: env)
    allocator, stats = JSON.parse(out, symbolize_names: true)
    assert_equal ["culet", false], allocator.values_at(:name, :active)
    assert_equal GLIBC_KEYS.sort, stats.keys.sort
    assert_operator stats[:used_bytes], :>, 0
  end

  private

  def on_culet = NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))

  # Runs a script on culet and gives back all that it told.
  def ask(script)
    Dir.mktmpdir do |directory|
      prelude = "require 'culet'; require 'json'; require 'fiddle'; def tell(data) = puts(JSON.generate(data));"
      out, err = assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", "#{prelude}\n#{script}",
                                File.join(directory, "info.xml"), env: on_culet)
      assert_empty err
      out.lines.map { |line| JSON.parse(line, symbolize_names: true) }
    end
  end

  def bytes_of(stats, key) = stats[:classes].sum { |each| each[:block_bytes] * each[key] }

  def class_of(stats, bytes) = stats[:classes].find { |each| each[:block_bytes] >= bytes }

  # By name: every figure, and for each class in use its slabs and blocks.
  def flat(stats)
    figures = (BYTES + COUNTS).to_h { |key| [key, stats[key]] }
    figures[:used_bytes] += figures[:large_bytes] # malloc_info, like glibc's, counts them together
    stats[:classes].each do |each|
      CLASS_KEYS.drop(1).each { |key| figures[:"#{key}_of_#{each[:block_bytes]}"] = each[key] }
    end
    figures
  end

  INFO = { "used" => :used_bytes, "rest" => :free_bytes, "cached" => :cached_bytes, "slab" => :slab_bytes, "run" => :run_bytes,
           "mmap" => :large_bytes, "free_resident" => :free_resident_bytes, "free_returned" => :free_returned_bytes,
           "returned" => :returned_bytes, "descriptor" => :descriptor_bytes }.freeze
  INFO_COUNTS = { "run" => :runs, "mmap" => :large_blocks, "returned" => :purges }.freeze

  # By name: every figure from what malloc_info wrote, and for each class in use its slabs and blocks.
  def figures_of(text)
    figures = {}
    text.scan(/<total type="(\w+)"(?: count="(\d+)")? size="(\d+)"/) do |type, count, size|
      figures[INFO.fetch(type)] = size.to_i
      figures[INFO_COUNTS.fetch(type)] = count.to_i if count
    end
    figures[:mapped_bytes] = text[/<system type="current" size="(\d+)"/, 1].to_i
    %w[threads arenas forks].each { |name| figures[name.to_sym] = text[/<#{name} count="(\d+)"/, 1].to_i }
    text.scan(/<size from="\d+" to="(\d+)" slabs="(\d+)" used="(\d+)" free="(\d+)" cached="(\d+)"/) do |size, *counts|
      CLASS_KEYS.drop(1).zip(counts) { |key, count| figures[:"#{key}_of_#{size}"] = count.to_i }
    end
    figures
  end

  # What the asking takes itself: some blocks of a class, a few slabs in all.
  SLACK_BLOCKS = 300
  SLACK_BYTES = 1 << 20

  def compare(info, before, after)
    expected = before.keys - %i[heap_bytes segments used_resident_bytes unused_resident_bytes]
    assert_empty expected - info.keys
    assert_operator info.count, :>, 100
    expected.each do |key|
      low, high = [before[key], after.fetch(key)].minmax
      slack = key.end_with?("_bytes") ? SLACK_BYTES : SLACK_BLOCKS
      assert_includes (low - slack)..(high + slack), info[key], key
    end
  end
end
