# frozen_string_literal: true

require_relative "target_helper"
require_relative "../roots/in_tests"
require "rubies"
require "culet/model/snapshot_levels"

# Ruby's heap pages and slots from outside: what GC.stat says in the process, on every Ruby there is.
class ScopeRubyHeapTest < Minitest::Test
  include TargetHelper
  include Roots::InTests

  # Objects of several sizes, a part of them dropped, and young ones. The figures are read last, into a Hash that is there already; what
  # Ruby allocates until it stops itself is a handful.
  SCRIPT = <<~RUBY
    kept = Array.new(60_000) { |i| "x" * (i % 900) }
    arrays = Array.new(10_000) { |i| Array.new(i % 60) }
    kept.select!.with_index { |_, i| i % 5 > 1 }
    figures = GC.stat
    heaps = GC.respond_to?(:stat_heap) ? GC.stat_heap : {}
    3.times { GC.start }
    GC.disable
    young = Array.new(20_000) { Object.new }
    GC.stat(figures)
    heaps.each { |index, heap| GC.stat_heap(index, heap) }
    Process.kill(:STOP, $$)
    figures.each { |key, value| puts "\#{key} \#{value}" }
    heaps.each_value { |heap| puts "heap_of_\#{heap[:slot_size]} \#{heap[:heap_eden_slots] + heap.fetch(:heap_tomb_slots, 0)}" }
    puts "pages_bytes \#{GC::INTERNAL_CONSTANTS[:HEAP_PAGE_SIZE]}", RUBY_VERSION, "end"
    $stdout.flush
    sleep
  RUBY
  FEW_SLOTS = 60
  # Ractors that have ended, whose 20 MB of slots are free again.
  ENDED_RACTORS = <<~RUBY
    Warning[:experimental] = false
    ractors = Array.new(2) { Ractor.new { Array.new(250_000) { Object.new }.size } }
    ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    GC.start
    $stdout.sync = true
    puts "end"
    sleep
  RUBY

  def test_pages_and_slots_of_a_frozen_process
    Rubies.all.each { |ruby| assert_like_gc_stat([ruby.path]) }
  end

  def test_under_other_allocators
    %w[culet jemalloc].each { |allocator| assert_like_gc_stat([RbConfig.ruby], env: on(allocator)) }
  end

  # The default collector as a library of its own, where this Ruby was built for that. Others have other heaps.
  def test_with_the_collector_loaded_as_a_library
    folder = RbConfig::CONFIG["modular_gc_dir"].to_s
    skip "this Ruby has no collector to load: configure it --with-modular-gc" unless File.exist?(File.join(folder, "librubygc.default.so"))

    assert_like_gc_stat([RbConfig.ruby], env: { "RUBY_GC_LIBRARY" => "default" })
  end

  # Another collector's heap is not guessed at, whoever serves malloc.
  def test_with_a_collector_that_is_not_known
    pairs = Rubies.all.flat_map { |ruby| (ruby.collectors - %w[default]).map { |collector| [ruby, collector] } }
    skip "no Ruby here has another collector to load: CULET_TEST_RUBIES may name one" if pairs.empty?

    pairs.product(%w[glibc jemalloc culet]).each do |(ruby, collector), allocator|
      env = { **on(allocator), "RUBY_GC_LIBRARY" => collector }
      with_talker(ruby.path, "-e", "$stdout.sync = true; kept = Array.new(60_000) { [] }; puts 'end'; sleep", env: env) do |pid, _, _|
        assert_said_unknown(read(pid), ruby, collector)
      end
    end
  end

  # Other releases, in Debian roots. Rubies before 3.1 are not supported.
  Roots::RUBIES.each_key do |name|
    define_method("test_rubies_of_#{name}") do
      root = root(name)
      rubies = root.rubies.select { |path| path[/[0-9.]+\z/].to_f >= 3.1 }
      skip "Debian #{name} has no Ruby that is supported" if rubies.empty?
      rubies.each { |ruby| assert_like_gc_stat(root.command(ruby)) }
    end
  end

  # Each slot is told: the bitmap's live bits are the slots that hold objects.
  def test_slots_one_by_one
    with_frozen_ruby([RbConfig.ruby]) do |snapshot, _|
      assert_equal snapshot.ruby.pages, snapshot.ruby_pages.size
      assert_equal snapshot.ruby.slots.sum { |each| each["live"] }, snapshot.ruby_pages.sum { |page| page.live.unpack1("b*").count("1") }
      snapshot.ruby_pages.each do |page|
        region = snapshot.regions.find { |each| each.ruby? && each.start <= page.address && page.address < each.end }
        assert region, page.address.to_s(16)
        assert_equal 0, (page.address - region.start) % snapshot.ruby.to_h["page_bytes"]
      end
    end
  end

  # Live, free and overhead are all there is of the pages; in memory they are what the mappings say.
  def test_bytes_add_up
    with_frozen_ruby([RbConfig.ruby]) do |snapshot, _|
      ruby = snapshot.ruby
      assert_equal ruby.pages * ruby.to_h["page_bytes"], ruby.live_bytes + ruby.free_bytes + ruby.overhead_bytes
      assert_equal resident_bytes(snapshot, snapshot.regions.select(&:ruby?)),
                   ruby.live_resident_bytes + ruby.free_resident_bytes + ruby.overhead_resident_bytes
      assert_equal ruby.live_bytes, snapshot.regions.select(&:ruby?).sum { |region| region.fill_runs.sum { |count, used| count * used } }
    end
  end

  # Wherever Ruby keeps pages for later.
  def test_free_pages_are_rubys
    with_talker(RbConfig.ruby, "-e", ENDED_RACTORS) do |pid, _, _|
      snapshot = read(pid)
      assert_operator Culet::SnapshotLevels.new(snapshot).levels.fetch("other"), :<, 2 << 20
      assert_whole snapshot
    end
  end

  # Rubies up to 3.2 have 32 MiB for what young arrays hold, of which a part is in memory from the start. 3.1 maps them by
  # itself, 3.2 asks malloc.
  def test_the_transient_heap
    skip "this Ruby has none" if RUBY_VERSION >= "3.3"

    with_frozen_ruby([RbConfig.ruby]) do |snapshot, _|
      region = snapshot.regions.find { |each| each.holds == "transient" }
      if RUBY_VERSION < "3.2"
        assert_equal 32 << 20, region.bytes
        assert_equal resident_bytes(snapshot, [region]), snapshot.ruby.to_h["transient_resident_bytes"]
      else
        assert_equal [nil, 0], [region, snapshot.ruby.to_h["transient_resident_bytes"]]
        assert(snapshot.regions.any? { |each| each.malloc? && each.bytes.between?(32 << 20, 33 << 20) })
      end
    end
  end

  # A page of objects right before the transient heap can begin as a block of it does.
  def test_pages_beside_the_transient_heap
    with_target("ruby_transient") do |program|
      with_frozen(program) do |pid, lines, _|
        snapshot = read(pid)
        made = lines.filter_map { |line| line.split if line.include?(" ") }.to_h.transform_values(&:to_i)
        region = snapshot.regions.find { |each| each.holds == "transient" }
        assert_equal [made["transient"], 32 << 20], [region.start, region.bytes]
        assert_equal made["pages"], snapshot.ruby.pages
        assert_empty snapshot.problems
        assert_whole snapshot
      end
    end
  end

  def test_a_program_that_is_not_ruby
    with_talker("sh", "-c", "echo end; read x < /dev/zero") do |pid, _, _|
      snapshot = read(pid)
      assert_nil snapshot.ruby
      assert_empty snapshot.ruby_pages
    end
  end

  private

  # @yieldparam snapshot [Culet::Scope::Snapshot]
  # @yieldparam figures [Hash{String => Integer}] GC.stat
  def with_frozen_ruby(command, env: {})
    with_started(*command, "-e", SCRIPT, env: TestHelper::NEUTRAL.merge(env)) do |pid, out|
      assert_settles { File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] == "T" }
      snapshot = read(pid)
      Process.kill(:CONT, pid)
      words = out.each_line.take_while { |line| line != "end\n" }.map(&:split)
      yield snapshot, words.select { |line| line.size == 2 }.to_h.transform_values(&:to_i), words.last.first
    end
  end

  # From 3.2 on Ruby tells the slots of each size.
  def assert_slot_sizes(figures, ruby, command)
    sizes = figures.filter_map { |key, count| [key.delete_prefix("heap_of_").to_i, count] if key.start_with?("heap_of_") && count.positive? }.to_h
    assert_equal ruby.version >= "3.2", sizes.any?, command.last
    assert_equal sizes, ruby.slots.to_h { |each| [each["slot_bytes"], each["live"] + each["free"]] }, command.last if sizes.any?
  end

  def assert_said_unknown(snapshot, ruby, collector)
    heap = snapshot.ruby
    assert_equal [ruby.version, 0, [], []], [heap.version, heap.pages, heap.slots, snapshot.ruby_pages]
    assert_match(/\(librubygc\.#{collector}\.so\), whose heap layout is unknown/, heap.why)
    assert_equal [heap.why], snapshot.problems
    assert_whole snapshot
  end

  def assert_like_gc_stat(command, env: {})
    with_frozen_ruby(command, env: env) do |snapshot, figures, version|
      ruby = snapshot.ruby
      assert_equal version, ruby.version
      assert_equal figures.fetch("heap_allocated_pages"), ruby.pages, command.last
      assert_equal figures.fetch("pages_bytes"), ruby.to_h["page_bytes"]
      assert_equal figures.fetch("heap_available_slots"), ruby.slots.sum { |each| each["live"] + each["free"] }
      live = figures.fetch("heap_live_slots") + figures.fetch("heap_final_slots")
      assert_includes live..(live + FEW_SLOTS), ruby.slots.sum { |each| each["live"] }, command.last
      assert_slot_sizes(figures, ruby, command)
      assert_in_delta figures.fetch("old_objects"), ruby.old_objects, FEW_SLOTS, command.last
      assert_equal figures.values_at("minor_gc_count", "major_gc_count"), [ruby.minor_gcs, ruby.major_gcs], command.last
      assert_empty snapshot.problems
      assert_whole snapshot
    end
  end
end
