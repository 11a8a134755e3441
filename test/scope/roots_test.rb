# frozen_string_literal: true

require_relative "exact_figures"
require_relative "target_helper"
require_relative "../roots/in_tests"

# Other C libraries and Rubies: programs run in Debian releases of their own (chroot), and are read from outside, as those
# of a container are. What is read is what malloc, and Ruby, say themselves.
class ScopeRootsTest < Minitest::Test
  include TargetHelper
  include ExactFigures
  include Roots::InTests

  MODES = { "sliced" => [], "stopped" => ["--stop"], "live" => ["--live"] }.freeze
  SOURCES = ["reader/test/targets", "test/scope/targets"].freeze
  SHARE = Roots::Root::SHARE

  # Words for reader/test/targets/heap.c, and the environment.
  HEAPS = [
    ["mixed 1 30"], ["mixed 20 60"], ["small 4 20"], ["large 4 60"], ["aligned 3 8"], ["trimmed 4 30"], ["gaps 2 20"],
    ["nobrk 2 15"], ["churned 1 20"], ["churned 20 60"],
    ["mixed 8 20", { "MALLOC_ARENA_MAX" => "1" }], ["mixed 8 20", { "MALLOC_ARENA_MAX" => "2" }],
    ["churned 8 20", { "GLIBC_TUNABLES" => "glibc.malloc.tcache_count=0" }],
    ["churned 8 20", { "GLIBC_TUNABLES" => "glibc.malloc.tcache_count=100" }],
    ["churned 8 20", { "GLIBC_TUNABLES" => "glibc.malloc.mxfast=0" }],
    ["churned 8 20", { "GLIBC_TUNABLES" => "glibc.malloc.tcache_max=60000" }],
    ["mixed 8 20", { "GLIBC_TUNABLES" => "glibc.malloc.hugetlb=1" }],
    ["large 4 60", { "GLIBC_TUNABLES" => "glibc.malloc.hugetlb=1" }],
    ["churned 4 30", { "GLIBC_TUNABLES" => "glibc.malloc.tcache_max=4000000" }],
    ["large 4 60", { "GLIBC_TUNABLES" => "glibc.malloc.tcache_max=4000000:glibc.malloc.hugetlb=1" }],
    ["mixed 4 20", { "MALLOC_TOP_PAD_" => "3000000", "MALLOC_MMAP_THRESHOLD_" => "5000" }]
  ].freeze

  # Words for reader/test/targets/caches.c, and tunables.
  TCACHES = [
    ["2000 60000 120000 100000", "glibc.malloc.tcache_max=4000000"], ["200000 3000000 1000000", "glibc.malloc.tcache_max=4000000"],
    ["200000 3000000 1000000 60000", "glibc.malloc.tcache_max=4000000:glibc.malloc.hugetlb=1"],
    ["200000 3000000 1000000 60000", "glibc.malloc.tcache_max=4000000:glibc.malloc.mmap_threshold=8000000:glibc.malloc.hugetlb=1"]
  ].freeze

  # Twenty threads whose strings must still be what they were; then it stops.
  ON_CULET = <<~RUBY
    threads = Array.new(20) do |n|
      Thread.new { Array.new(8000) { |i| (n.to_s * (i % 200 + 1)) }.select.with_index { |_, i| i % 3 == 0 } }
    end
    lines = threads.flat_map(&:value)
    GC.start
    puts lines.size, lines.sum(&:size), "end"
    $stdout.flush
    Process.kill(:STOP, $$)
    sleep
  RUBY

  Roots::RUBIES.each_key do |name|
    define_method("test_c_programs_in_#{name}") do
      in_root(name) do |root, share|
        program = root.compile("heap", "#{SHARE}/scope/test/targets/heap.c", share: share)
        HEAPS.each { |words, env| assert_heap(root, share, [program, *words.split], env || {}) }
        static = root.compile("static_heap", "-static", "#{SHARE}/scope/test/targets/heap.c", share: share)
        assert_heap(root, share, [static, "mixed", "3", "15"])
      end
    end

    # From 2.42 on tcaches hold blocks up to 4 MiB, also those with a mapping of their own.
    define_method("test_large_blocks_in_tcaches_in_#{name}") do
      in_root(name) do |root, share|
        program = root.compile("caches", "#{SHARE}/scope/test/targets/caches.c", share: share)
        TCACHES.each { |words, tunables| assert_cached(root, share, [program, *words.split], { "GLIBC_TUNABLES" => tunables }) }
      end
    end

    define_method("test_gigabytes_in_#{name}") do
      in_root(name) do |root, share|
        program = root.compile("heap", "#{SHARE}/scope/test/targets/heap.c", share: share)
        ["mixed 20 1800", "small 20 1000"].each { |words| assert_heap(root, share, [program, *words.split]) }
      end
    end

    define_method("test_ruby_in_#{name}") do
      in_root(name) do |root, share|
        library = root.compile("freeze.so", "-shared", "-fPIC", "#{SHARE}/test/scope/targets/freeze.c", share: share)
        refute_empty root.rubies
        root.rubies.each { |ruby| assert_heap(root, share, [ruby, "#{SHARE}/test/scope/targets/threads.rb", 20, 30_000, library]) }
      end
    end
  end

  Roots::RUBIES.each_key do |name|
    define_method("test_culet_in_#{name}") do
      in_root(name) do |root, share|
        culet = { "LD_PRELOAD" => root.libculet(share: share) }
        program = root.compile("blocks", "#{SHARE}/test/scope/targets/blocks.c", "-ldl", share: share)
        assert_culet(root.command(program, 20, 4000, "still", share: share, env: culet))
        root.rubies.each { |ruby| assert_ruby_on_culet(root.command(ruby, "-e", ON_CULET, share: share, env: culet)) }
      end
    end
  end

  private

  # @yieldparam root [Roots::Root]
  # @yieldparam share [String] a folder with the sources of the targets, that the root sees as SHARE
  def in_root(name)
    root = root(name)
    in_directory do |share|
      SOURCES.each do |folder|
        FileUtils.mkdir_p(File.join(share, folder))
        FileUtils.cp_r("#{ROOT}/#{folder}/.", File.join(share, folder))
      end
      yield root, share
    end
  end

  # Runs a program that says malloc's figures and stops, and compares them with what is read in all modes.
  def assert_heap(root, share, words, env = {})
    with_frozen(*root.command(*words, share: share, env: env), last: /\Amallinfo /) do |pid, lines, _|
      figures = figures_in(lines.last)
      MODES.each do |mode, options|
        map = json("map", pid, *options)
        about = "#{words.join(" ")} #{env} on glibc #{root.glibc}, #{mode}"
        assert_equal %w[glibc blocks], map.fetch("allocator").values_at("name", "level"), about
        assert_figures(figures, map, map.fetch("problems"), about)
      end
    end
  end

  # Whether this glibc keeps such blocks shows in its own figures: those of what is not kept fall.
  def assert_cached(root, share, words, env)
    with_frozen(*root.command(*words, share: share, env: env), last: /\Amallinfo /) do |pid, lines, output|
      before = figures_in(lines.last)
      Process.kill(:CONT, pid)
      freed = output.gets[/\Acached (\d+)/, 1].to_i
      after = figures_in(output.gets)
      assert_settles { File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] == "T" }
      cached = after.fetch("uordblks") < before.fetch("uordblks") ? 0 : freed
      MODES.each do |mode, options|
        map = json("map", pid, *options)
        about = "#{words.join(" ")} #{env} on glibc #{root.glibc}, #{mode}"
        assert_figures(after, map, map.fetch("problems"), about)
        assert_equal [cached + after.fetch("hblkhd"), after.fetch("hblkhd")], map.values_at("tcache_bytes", "tcache_mmapped_bytes"), about
      end
    end
  end

  # The target tells the allocator's own figures.
  def assert_culet(command)
    with_frozen(*command) do |pid, lines, _|
      figures = lines.map(&:split).select { |words| words.size == 2 }.to_h.transform_values(&:to_i)
      MODES.each do |mode, options|
        map = json("map", pid, *options)
        assert_equal [%w[culet blocks], []], [map.fetch("allocator").values_at("name", "level"), map.fetch("problems")], mode
        assert_equal figures.values_at("used", "cached", "large", "large_blocks"),
                     map.values_at("used_bytes", "tcache_bytes", "mmapped_bytes", "mmapped_chunks"), mode
      end
    end
  end

  def assert_ruby_on_culet(command)
    expected = Array.new(20) { |n| Array.new(8000) { |i| n.to_s.size * ((i % 200) + 1) }.select.with_index { |_, i| (i % 3).zero? } }.flatten
    with_frozen(*command) do |pid, lines, _|
      assert_equal [expected.size, expected.sum], lines.first(2).map(&:to_i)
      map = json("map", pid)
      assert_equal [%w[culet blocks], []], [map.fetch("allocator").values_at("name", "level"), map.fetch("problems")], command.last(3).first
      assert_operator map.fetch("used_bytes"), :>, expected.sum
    end
  end
end
