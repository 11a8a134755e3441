# frozen_string_literal: true

require "objspace"
require_relative "cow_helper"

# To whom a page that is not shared any more is put down, where what the worker did is known.
class CowCensusTest < Minitest::Test
  include CowHelper

  MIB = 1 << 20

  # usage: forked WHAT: the parent has 16,384 blocks of 4,000 bytes; the child writes to every fourth MiB of them, frees
  # every eighth block, or has blocks of its own.
  C = <<~C
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    enum { BLOCKS = 16384, BYTES = 4000 };
    static char *blocks[BLOCKS];
    int main(int argc, char **argv)
    {
      int ready[2];
      char byte = 0;
      if (argc < 2 || pipe(ready)) return 1;
      for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), 1, BYTES);
      if (fork() == 0) {
        if (argv[1][0] == 'w') for (int i = 0; i < BLOCKS / 4; i++) blocks[i][BYTES / 2] = 2;
        if (argv[1][0] == 'f') for (int i = 0; i < BLOCKS; i += 8) free(blocks[i]);
        if (argv[1][0] == 'o') for (int i = 0; i < 8; i++) memset(malloc(1 << 20), 1, 1 << 20);
        if (write(ready[1], &byte, 1) != 1) return 1;
        pause();
      }
      if (read(ready[0], &byte, 1) != 1) return 1;
      puts("up");
      fflush(stdout);
      pause();
      return 0;
    }
  C

  def test_what_it_wrote
    with_forked("write") do |child|
      # A page at each end of a block may be its neighbour's too.
      assert_in_delta 16 * MIB, bytes_of(child, :unshared, "malloc_used", "malloc_free"), 0.5 * MIB
      assert_in_delta 46.5 * MIB, bytes_of(child, :shared, "malloc_used"), 1.5 * MIB
      assert_operator child.breakdown.total.fresh, :<, MIB / 2
    end
  end

  # An allocator that writes into what is freed unshares the page for it; culet does not.
  def test_what_it_freed
    with_forked("free") do |child|
      assert_operator bytes_of(child, :unshared, "malloc_used", "malloc_free"), :>=, 8 * MIB
    end
    with_forked("free", env: on("culet")) do |child|
      assert_operator bytes_of(child, :unshared, "malloc_used", "malloc_free"), :<, MIB / 2
      assert_in_delta 8 * MIB, bytes_of(child, :shared, "malloc_free"), MIB
    end
  end

  def test_what_it_added
    with_forked("own") do |child|
      assert_in_delta 8 * MIB, bytes_of(child, :fresh, "malloc_used", "malloc_free"), 0.2 * MIB
      assert_operator child.breakdown.total.unshared, :<, MIB / 2
      assert_in_delta 62.5 * MIB, bytes_of(child, :shared, "malloc_used"), MIB
    end
  end

  # The parent is compared with its child: what the child wrote is the parent's alone by then.
  def test_the_parent
    with_forked("write") do |child, parent|
      assert_in_delta child.breakdown.total.unshared, parent.breakdown.total.unshared, MIB / 4
      assert_equal 0, parent.breakdown.total.own
    end
  end

  # Objects in slots, written by a worker.
  def test_rubys_pages
    program = "#{FORKS}KEPT = Array.new(300_000) { Object.new }; 4.times { GC.start }; family(1) { KEPT.each { |one| one.instance_variable_set(:@own, 1) } }"
    with_family(*RUBY, "-e", program) do |pid|
      child = family(pid).workers.first
      assert_operator bytes_of(child, :unshared, "ruby_objects"), :>=, 300_000 * ObjectSpace.memsize_of(Object.new)
    end
  end

  # A fill's sums are what adding up page by page gives.
  def test_a_fill
    runs = [[3, 10], [1, 0], [4, 4096], [2, 7]]
    payload = runs.flatten.map { |value| value < 128 ? value.chr : [(value & 127) | 128, value >> 7].pack("CC") }.join
    region = Culet::Scope::Region.new("id" => 1, "start" => 8192 + 100, "end" => 8192 + (10 * 4096) - 50, "arena" => nil, "mapping" => 0, "holds" => "heap")
    region.fill_payload = payload.b
    pages = runs.flat_map { |count, used| [used] * count }
    fill = Culet::Cow::FillIndex.new(region, page_bytes: 4096)
    (0..10).to_a.combination(2) do |first, past|
      from = first.zero? ? region.start : 8192 + (first * 4096)
      to = past == 10 ? region.end : 8192 + (past * 4096)
      assert_equal pages[first...past].sum, fill.used_bytes(from, to), "pages #{first} to #{past}"
    end
  end

  private

  # @yieldparam child [Culet::Cow::ForkedProcess]
  # @yieldparam parent [Culet::Cow::ForkedProcess]
  def with_forked(what, env: {})
    in_directory do |directory|
      with_family(compile_c("#{directory}/forked", C, "-O1"), what, env: { "CULET_CHILDREN" => "all", **env }) do |pid|
        found = family(pid)
        yield found.workers.first, found.members.first
      end
    end
  end
end
