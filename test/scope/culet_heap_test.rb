# frozen_string_literal: true

require_relative "target_helper"

# culet's own heap from outside: the same figures as the allocator's own, to the last block.
class ScopeCuletHeapTest < Minitest::Test
  include TargetHelper

  def test_a_frozen_program_with_twenty_threads_to_the_last_block
    look_at_blocks(20, 4000) do |snapshot, figures, classes|
      assert_equal ["culet", true], [snapshot.allocator.name, snapshot.allocator.blocks?]
      assert_empty snapshot.problems
      assert_figures figures, snapshot
      assert_classes classes, snapshot
      assert_whole snapshot
    end
  end

  def test_one_thread
    look_at_blocks(1, 3000) { |snapshot, figures, _| assert_figures figures, snapshot }
  end

  def test_resident_bytes_add_up_to_the_pages_in_memory
    look_at_blocks(4, 3000) do |snapshot, _, _|
      malloc = snapshot.malloc
      regions = snapshot.regions.reject(&:ruby?)
      assert_equal resident_bytes(snapshot, regions),
                   malloc.used_resident_bytes + malloc.to_h.fetch("free_resident_bytes") + malloc.metadata_resident_bytes
      assert_operator regions.sum { |region| region.fill_runs.sum { |count, used| count * used } }, :>=, malloc.used_bytes
    end
  end

  # Each block is told as used or free, and each byte once.
  def test_blocks_one_by_one
    look_at_blocks(3, 3000) do |snapshot, figures, _|
      bytes = Hash.new(0)
      snapshot.regions.each { |region| RegionBlocks.of(region).each { |_, length, state| bytes[state] += length } }
      assert_equal figures.fetch("used") + figures.fetch("large"), bytes[RegionBlocks::USED]
      assert_equal figures.fetch("cached"), bytes[RegionBlocks::CACHED]
    end
  end

  def test_every_descriptor_is_told_as_metadata
    look_at_blocks(2, 3000) do |snapshot, figures, _|
      metadata = snapshot.regions.select { |region| region.holds == "metadata" }.sum(&:bytes)
      assert_operator metadata, :>=, figures.fetch("descriptors")
      assert_includes snapshot.mappings.map { |mapping| mapping.to_h["use"] }, "allocator"
    end
  end

  # What a trim returns is told beforehand. Pages that the scavenger returned meanwhile are among them.
  def test_a_trim_returns_what_was_predicted
    assert_trim_predicted(1)
  end

  # Also what is free in the arenas of other threads.
  def test_a_trim_returns_what_was_predicted_of_twenty_threads
    assert_trim_predicted(20)
  end

  # Blocks that are set aside for the next requests are free to the allocator, and look used from outside.
  def test_a_program_with_a_memory_profile
    look_at_blocks(4, 3000, "CULET_PROFILE" => "16k") do |snapshot, figures, classes|
      free = classes.sum { |bytes, _, blocks| bytes * blocks }
      assert_empty snapshot.problems
      assert_includes figures["used"]..(figures["used"] + free), snapshot.malloc.to_h["used_bytes"]
      assert_equal figures["large"], snapshot.malloc.to_h["mmapped_bytes"]
      assert_equal figures["segments"], snapshot.malloc.to_h["heaps"]
      assert_whole snapshot
    end
  end

  # The page heap changes between the slices, and within them where nothing is paused.
  def test_programs_that_go_on
    with_target("blocks") do |program|
      with_talker(program, 3, 0, "busy", env: on("culet"), last: "busy") do |pid, _, _|
        3.times do
          %i[sliced stopped].each do |mode|
            snapshot = read(pid, mode: mode)
            assert_equal "culet", snapshot.allocator.name
            assert_operator snapshot.malloc.used_bytes, :>, 1 << 20
            assert_whole snapshot
            assert_empty snapshot.problems if mode == :stopped
          end
          assert_equal "culet", read(pid, mode: :live).allocator.name
        end
        assert_equal 1, Process.kill(0, pid)
      end
    end
  end

  # Ruby on culet: its blocks by Culet.stats, which counts a few of its own.
  def test_ruby
    script = 'require "culet"; X = Array.new(50_000) { |i| "x" * (i % 3000) }; GC.start; ' \
             's = Culet.stats; puts s[:used_bytes], "end"; $stdout.flush; Process.kill(:STOP, $$)'
    with_frozen(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-e", script, env: on("culet")) do |pid, lines, _|
      snapshot = read(pid)
      assert_in_delta lines.first.to_i, snapshot.malloc.used_bytes, 200_000
      assert_operator snapshot.ruby.pages, :>, 10
      assert_whole snapshot
    end
  end

  # Dormant, culet passes all on to glibc's allocator: that is what there is to see.
  def test_a_program_that_culet_leaves_alone
    env = on("culet").merge("CULET_INHERITED" => "1")
    with_talker("sh", "-c", "echo end; read x < /dev/zero", env: env) do |pid, _, _|
      refute_equal "culet", read(pid).allocator&.name
    end
  end

  # A library that says nothing of itself: a sentence, and the rest as usual.
  def test_a_library_without_a_record
    directory = new_folder
    library = compile_c(File.join(directory, "libculet.so"), "int culet_active(void) { return 0; }", "-shared", "-fPIC")
    with_talker("sleep", "60", env: { "LD_PRELOAD" => library }, last: nil) do |pid, _, _|
      assert_settles { File.read("/proc/#{pid}/maps").include?(library) }
      snapshot = read(pid)
      assert_equal 1, snapshot.problems.grep(/\Alibculet\.so is in the process, but/).size, snapshot.problems.inspect
      refute_equal "culet", snapshot.allocator.name
    end
  end

  private

  # @param settings [Hash{String => String}] environment variables
  # @yieldparam snapshot [Culet::Scope::Snapshot]
  # @yieldparam figures [Hash{String => Integer}] what the allocator said just before it stopped
  # @yieldparam classes [Array<Array<Integer>>] of each size class: bytes of a block, used blocks, free ones
  def look_at_blocks(threads, steps, settings = {})
    with_target("blocks") do |program|
      with_frozen(program, threads, steps, "still", env: on("culet").merge(settings)) do |pid, lines, _|
        words = lines.map(&:split)
        classes, figures = words.reject { |line| line.size < 2 }.partition { |line| line.first == "class" }
        yield read(pid), figures.to_h.transform_values(&:to_i), classes.map { |line| line.drop(1).map(&:to_i) }
      end
    end
  end

  def assert_trim_predicted(threads)
    with_target("blocks") do |program|
      with_frozen(program, threads, 20_000, "full", env: on("culet")) do |pid, _, output|
        predicted = read(pid).malloc.trim_bytes
        before = rss_bytes(pid)
        Process.kill(:CONT, pid)
        assert_equal "trimmed\n", output.gets
        assert_operator predicted, :>, 1 << 20
        assert_in_delta predicted, before - rss_bytes(pid), (predicted * 0.02) + (48 * 4096)
      end
    end
  end

  def assert_figures(figures, snapshot)
    malloc = snapshot.malloc.to_h
    told = { "used" => malloc["used_bytes"], "cached" => malloc["tcache_bytes"], "large" => malloc["mmapped_bytes"],
             "large_blocks" => malloc["mmapped_chunks"], "segments" => malloc["heaps"],
             "free" => malloc["free_resident_bytes"] + malloc["free_returned_bytes"] - malloc["kept_bytes"],
             "heap" => snapshot.arenas.sum(&:system_bytes) }
    assert_equal figures.slice(*told.keys), told.slice(*figures.keys)
  end

  # Up to a kilobyte the histogram has a bucket for each size.
  def assert_classes(classes, snapshot)
    buckets = snapshot.sizes.fetch("buckets").to_h { |bytes, used, _, free, _| [bytes, [used, free]] }
    exact = classes.select { |bytes, used, free| bytes < 1024 && (used + free).positive? }
    assert_operator exact.size, :>, 50
    exact.each { |bytes, used, free| assert_equal [used, free], buckets[bytes], "blocks of #{bytes} bytes" }
  end
end
