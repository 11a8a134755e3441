# frozen_string_literal: true

require "objspace"
require_relative "cow_helper"

# What a page that is not shared any more is put down to, where it is known what was written there.
class CowWritesTest < Minitest::Test
  include CowHelper

  MIB = 1 << 20
  KINDS = Culet::Cow::Writes::CATEGORIES
  # Of an object without instance variables, or with up to two.
  SLOT_BYTES = ObjectSpace.memsize_of(Object.new)

  # usage: heap WHAT: the parent has 65,536 blocks of 1,000 bytes, of which every second of the last half is freed; the child
  # writes to those of the first eighth, frees every eighth of the first half, or takes as many as were freed.
  C = <<~C
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    enum { BLOCKS = 65536, BYTES = 1000 };
    static char *blocks[BLOCKS], *own[BLOCKS];
    int main(int argc, char **argv)
    {
      int ready[2];
      char byte = 0;
      if (argc < 2 || pipe(ready)) return 1;
      for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), 1, BYTES);
      for (int i = BLOCKS / 2; i < BLOCKS; i += 2) free(blocks[i]);
      if (fork() == 0) {
        if (argv[1][0] == 'w') for (int i = 0; i < BLOCKS / 8; i++) blocks[i][BYTES / 2] = 2;
        if (argv[1][0] == 'f') for (int i = 0; i < BLOCKS / 2; i += 8) free(blocks[i]);
        if (argv[1][0] == 't') for (int i = 0; i < BLOCKS / 4; i++) memset(own[i] = malloc(BYTES), 3, BYTES);
        if (write(ready[1], &byte, 1) != 1) return 1;
        pause();
      }
      if (read(ready[0], &byte, 1) != 1) return 1;
      /* By itself: puts allocates, and glibc sorts its free blocks then. */
      if (write(1, "up\\n", 3) != 3) return 1;
      pause();
      return 0;
    }
  C

  # In a block that was there: the program's data, on either allocator, and on pages of their own.
  def test_what_the_program_wrote
    %w[glibc culet].each do |allocator|
      with_heap("write", allocator) do |writes|
        assert_in_delta 8 * MIB, writes.only(:data), 0.3 * MIB, allocator
        assert_operator others(writes, :data), :<, 0.3 * MIB, allocator
      end
    end
  end

  # glibc links what is freed, and marks the block behind it, which is on another page for one in four; culet writes nothing.
  def test_what_was_freed
    with_heap("free", "glibc") do |writes|
      assert_in_delta 20 * MIB, writes.touched(:metadata), MIB
      assert_operator writes.only(:metadata), :>, 0.9 * writes.bytes
    end
    with_heap("free", "culet") { |writes| assert_operator writes.bytes, :<, MIB }
  end

  # Blocks that were free at the fork. glibc's neighbours' headers change too.
  def test_what_came_into_holes
    %w[glibc culet].each do |allocator|
      with_heap("take", allocator) do |writes|
        assert_operator writes.touched(:reuse), :>, 30 * MIB, allocator
        assert_operator writes.touched(:reuse), :>, 0.95 * writes.bytes, allocator
        assert_operator writes.touched(:data), :<, 0.5 * MIB, allocator
      end
    end
  end

  # Objects that are frozen: only their flags, of just so many, on either allocator.
  def test_flag_bits
    program = "KEPT = Array.new(100_000) { Object.new }; 4.times { GC.start }; family(1) { GC.disable; KEPT.each(&:freeze) }"
    %w[glibc culet].each do |allocator|
      with_ruby(program, allocator) do |writes|
        assert_equal 100_000, writes.flags["frozen"], allocator
        assert_operator writes.only(:flag_bits), :>, 100_000 * SLOT_BYTES, allocator
        assert_operator writes.only(:flag_bits), :>, 0.9 * writes.bytes, allocator
      end
    end
  end

  # And it is said, with what helps.
  def test_the_verdict_on_what_wrote_there
    program = "KEPT = Array.new(100_000) { Object.new }; 4.times { GC.start }; family(1) { GC.disable; KEPT.each(&:freeze) }"
    with_family(*RUBY, "-e", "#{FORKS}#{program}", env: on("glibc")) do |pid|
      told = Culet::Cow::Verdicts.new(family(pid, writes: 1)).list.find { |one| one.topic == "writes" }
      assert_match(/with only one cause: flag bits of objects .*frozen of 100,000 objects/, told.text)
      assert_match(/freeze in the parent what workers would freeze/, told.remedy)
    end
  end

  # Ruby 3.3 and later keep ages elsewhere.
  def test_ages_are_no_reason_to_freeze
    program = "GC.disable; KEPT = Array.new(100_000) { Object.new }; family(1) { GC.enable; 4.times { GC.start } }"
    with_family(*RUBY, "-e", "#{FORKS}#{program}", env: on("glibc")) do |pid|
      told = Culet::Cow::Verdicts.new(family(pid, writes: 1)).list
      assert_match(/flag bits of objects .*age of 1\d\d,\d{3} objects/, told.map(&:text).join("\n")) if RUBY_VERSION < "3.3"
      refute_match(/freeze in the parent/, told.filter_map(&:remedy).join)
    end
  end

  # Contents of blocks were written, no free list, and no age: only requests before the fork would have written them.
  def test_nothing_is_advised_that_leaves_the_writes
    program = "KEPT = Array.new(30_000) { 'x' * #{LONG_STRING_BYTES} }; family(1) { GC.disable; KEPT.each { |one| one.setbyte(300, 121) } }"
    with_family(*RUBY, "-e", "#{FORKS}#{program}", env: on("glibc")) do |pid|
      told = Culet::Cow::Verdicts.new(family(pid, writes: 1)).list
      assert_match(/\ACulet\.warmup\(requests: /, told.find { |one| one.topic == "malloc" }.remedy)
      refute_match(RESIDENT_STACK ? /Culet\.warmup in / : /culet run|Culet\.warmup in /, told.filter_map(&:remedy).join(" "))
    end
  end

  # Blocks that only the worker frees.
  def test_a_warm_up_is_advised_once_where_it_keeps_pages_shared
    program = "KEPT = Array.new(60_000) { 'x' * #{LONG_STRING_BYTES} }; KEPT.clear; family(1) { 3.times { GC.start } }"
    { "" => 1, "require 'culet'; Culet.warmup(steps: [:collect]); " => 0 }.each do |before, count|
      with_family(*RUBY, "-I#{ROOT}/lib", "-e", "#{FORKS}#{before}#{program}", env: on("glibc")) do |pid|
        told = Culet::Cow::Verdicts.new(family(pid, writes: 1)).list.filter_map(&:remedy)
        assert_equal count, told.join(" ").scan("Culet.warmup in").size, told.join("\n")
      end
    end
  end

  def test_code_ranges
    program = "KEPT = Array.new(100_000) { |i| [i, i].pack('NN').force_encoding('UTF-8') }; 4.times { GC.start }; " \
              "family(1) { GC.disable; KEPT.each(&:valid_encoding?) }"
    with_ruby(program, "glibc") do |writes|
      assert_in_delta 100_000, writes.flags["code_range"], 20
      assert_operator writes.only(:flag_bits), :>, 0.9 * writes.bytes
    end
  end

  # In the slot of an object, and in a string's own block. Both are old by then, and told by their type.
  def test_what_ruby_wrote
    program = "class K; def initialize = @a = 1; def b = @a = 2; end; KEPT = Array.new(200_000) { K.new }; 4.times { GC.start }; " \
              "family(1) { GC.disable; KEPT.each(&:b) }"
    with_ruby(program, "glibc") do |writes|
      assert_operator writes.only(:data), :>, 0.9 * changed(writes)
      assert_in_delta 200_000 * SLOT_BYTES, writes.holdings["T_OBJECT"].old, 100_000
    end
    program = "KEPT = Array.new(50_000) { |i| \"string number \#{i} of many, longer than any slot\" * 30 }; 4.times { GC.start }; " \
              "family(1) { GC.disable; KEPT.each { |one| one.setbyte(500, 65) } }"
    %w[glibc culet].each do |allocator|
      with_ruby(program, allocator) do |writes|
        assert_operator writes.only(:data), :>, 0.9 * writes.bytes, allocator
        assert_operator writes.holdings["T_STRING"].malloc, :>, 40_000_000, allocator
      end
    end
  end

  # Of objects that are no T_OBJECT. Ruby 4.0 has them in slots of its own kind, whose number was a cache's before.
  def test_instance_variables_elsewhere
    program = "KEPT = Array.new(200_000) { |i| (+'short').tap { |one| one.instance_variable_set(:@a, i) } }; 4.times { GC.start }; " \
              "family(1) { GC.disable; KEPT.each { |one| one.instance_variable_set(:@a, 1) } }"
    with_ruby(program, "glibc") do |writes|
      assert_operator writes.touched(:data), :>, 0.9 * changed(writes)
      assert_operator writes.touched(:inline_caches), :<, 0.15 * changed(writes)
    end
  end

  # Typed objects of extensions have a bit set on Ruby 4.0 that up to 3.2 is of their age.
  def test_who_is_old_beside_many_objects_of_extensions
    program = "class K; def initialize = @a = 1; end; KEPT = Array.new(20_000) { [K.new, Mutex.new] }; 4.times { GC.start }; " \
              "family(1) { GC.disable; KEPT.each { |one, _| one.freeze } }"
    with_ruby(program, "glibc") do |writes|
      assert_operator writes.holdings["T_OBJECT"].old, :>=, 20_000 * SLOT_BYTES
      assert_operator writes.holdings["T_OBJECT"].young, :<, 10_000
    end
  end

  # Methods that are called for the first time.
  def test_inline_caches
    program = "class Many; 4000.times { |i| class_eval(\"def m\#{i}(a) = a.abs.size + a.hash.abs + a.pred.to_i + \#{i}.succ\") }; end; " \
              "NAMES = Many.instance_methods(false); 4.times { GC.start }; " \
              "family(1) { GC.disable; one = Many.new; NAMES.each { |name| one.public_send(name, 3) } }"
    %w[glibc culet].each do |allocator|
      with_ruby(program, allocator) do |writes|
        assert_operator writes.touched(:inline_caches), :>, 0.7 * writes.bytes, allocator
        assert_operator writes.touched(:data), :<, 0.15 * writes.bytes, allocator
      end
    end
  end

  # New objects and their blocks where others were collected before the fork.
  def test_holes
    text = '"string number #{i} of many, longer than any slot"'
    program = "KEPT = Array.new(100_000) { |i| i.odd? ? Object.new : #{text} }; 100_000.times { |i| KEPT[i] = nil if i % 4 < 2 }; 4.times { GC.start }; " \
              "family(1) { GC.disable; $own = Array.new(45_000) { |i| i.odd? ? Object.new : #{text} } }"
    %w[glibc culet].each do |allocator|
      with_ruby(program, allocator) do |writes|
        assert_operator writes.touched(:reuse), :>, 0.85 * writes.bytes, allocator
        assert_operator writes.touched(:data), :<, 0.1 * writes.bytes, allocator
        assert_operator writes.holdings["T_STRING"].made, :>, 0.9 * 22_500 * 40, allocator
      end
    end
  end

  # The collector links the slots anew that are free after it: between the objects that a worker kept, all that it dropped.
  def test_the_collector
    program = "KEPT = Array.new(100_000) { Object.new }; 50_000.times { |i| KEPT[i * 2] = nil }; GC.start; 4.times { GC.start }; " \
              "family(1) { $own = Array.new(40_000) { Object.new }; 20_000.times { |i| $own[i * 2] = nil }; GC.start }"
    with_ruby(program, "glibc") do |writes|
      assert_operator writes.touched(:collector), :>, 0.6 * changed(writes)
      assert_operator writes.touched(:reuse), :>, 0.6 * changed(writes)
    end
  end

  # Pages that hold no object any more belong to Ruby still.
  def test_pages_that_a_collection_has_emptied
    program = "GC.disable; 400_000.times { Object.new }; family(1) { GC.enable; 3.times { GC.start } }"
    with_ruby(program, "glibc") do |writes|
      assert_operator writes.touched(:elsewhere), :<, MIB
      assert_operator writes.touched(:freed), :>, 0.5 * changed(writes)
    end
  end

  # Looking does not end the sharing that it looks at.
  def test_it_leaves_the_processes_as_they_are
    with_family(*RUBY, "-e", WORKERS) do |pid|
      pids = Culet::Processes::Tree.new(pid).pids
      figures = -> { pids.map { |one| Culet::Processes::Memory.rollup(one).slice("rss_bytes", "private_dirty_bytes", "private_clean_bytes", "swap_bytes") } }
      before = figures.call
      2.times { assert_equal 2, family(pid, writes: 2).members.count(&:writes) }
      figures.call.zip(before).each { |now, was| now.each { |key, value| assert_in_delta was[key], value, 100_000, key } }
    end
  end

  # The categories' pages are the pages that the census has, and each has one mask.
  def test_all_pages_are_told
    with_family(*RUBY, "-e", WORKERS) do |pid|
      found = family(pid, writes: 2)
      compared = found.members.select(&:writes)
      assert_equal 2, compared.size
      compared.each do |member|
        assert_equal member.breakdown.total.unshared, member.writes.bytes
        assert_operator KINDS.sum { |kind| member.writes.only(kind) }, :<=, member.writes.bytes
        assert_operator KINDS.sum { |kind| member.writes.touched(kind) }, :>=, member.writes.bytes
        assert_equal 0, member.writes.touched(:unknown)
      end
    end
  end

  # With the agent in the parent, by the names of classes; workers are not asked. Two hundred members lie in malloc on any Ruby,
  # and are written to at both ends, so that no page of theirs stays shared.
  def test_names_of_classes
    program = "class Account; def initialize = (@a = 1; @name = 'a name'); def b = @a = 2; end; Point = Struct.new(:a); " \
              "Wide = Struct.new(*Array.new(200) { |i| :\"m\#{i}\" }); " \
              "KEPT = Array.new(20_000) { [Account.new, Point.new(1)] }; WIDE = Array.new(2000) { Wide.new(*Array.new(200, 1)) }; 4.times { GC.start }; " \
              "family(1) { GC.disable; KEPT.each { |one, other| one.b; other.a = 2 }; WIDE.each { |one| one.m0 = one.m199 = 2 } }"
    with_family(*RUBY, "-I#{ROOT}/lib", "-rculet/agent", "-e", "#{FORKS}#{program}") do |pid|
      found = family(pid, writes: 1, classes: true)
      assert_empty found.problems
      writes = found.workers.first.writes
      assert_in_delta 20_000 * SLOT_BYTES, writes.classes["Account"].old, 10_000
      assert_in_delta 20_000 * SLOT_BYTES, writes.classes["Point"].old, 10_000
      assert_operator writes.classes["Wide"].malloc, :>=, 2000 * 200 * 8
      # Ruby itself and the look from outside agree on who is old. The parent may have written to a page more since it answered.
      assert_operator Culet::Cow::ClassNames.new([pid]).old_bits, :>, 0
      plain = family(pid, writes: 1).workers.first.writes
      assert_in_delta plain.holdings["T_STRUCT"].old, writes.holdings["T_STRUCT"].old, 10_000
      assert_empty plain.classes
      out, err, status = run_culet("cow", pid.to_s, "--classes", env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
      assert_match(/^Account +#{format("%.1f", 20_000 * SLOT_BYTES / 1e6)} /, out)
    end
  end

  def test_nobody_to_ask
    with_family(*RUBY, "-e", WORKERS) do |pid|
      document = json("cow", pid.to_s, "--classes")
      assert_match(/\Aclass names are not available: process #{pid} has no agent; /, document["problems"].first)
      assert_equal 3, document["processes"].drop(1).size
      assert_equal [1, {}], document["processes"].filter_map { |one| one["writes"] }.then { |all| [all.size, all.first["classes"]] }
    end
  end

  # Where blocks are not known, that is said.
  def test_an_allocator_that_is_told_by_pages
    skip "no jemalloc is installed" unless jemalloc

    with_family(*RUBY, "-e", WORKERS, env: { "LD_PRELOAD" => jemalloc }) do |pid|
      writes = family(pid, writes: 1).members.find(&:writes).writes
      assert_operator writes.touched(:unknown) + writes.touched(:elsewhere), :>, MIB / 2
      assert_operator writes.touched(:reuse), :>, 100_000, "Ruby's own pages are told all the same"
    end
  end

  private

  def jemalloc = Culet::Allocators.parse("jemalloc").environment({})["LD_PRELOAD"]

  # Ruby 4.1 also writes what is there already: the shape of an object, or that a slot is free.
  def changed(writes) = writes.bytes - writes.only(:same) - writes.only(:aged)

  def others(writes, *kinds) = (KINDS - kinds).sum { |kind| writes.only(kind) }

  # @yieldparam writes [Culet::Cow::Writes] of the child
  def with_heap(what, allocator)
    in_directory do |directory|
      with_family(compile_c("#{directory}/heap", C, "-O1"), what, env: { "CULET_CHILDREN" => "all", **on(allocator) }) { |pid| yield writes_of(pid) }
    end
  end

  # @yieldparam writes [Culet::Cow::Writes] of the child
  def with_ruby(program, allocator)
    with_family(*RUBY, "-e", "#{FORKS}#{program}", env: on(allocator)) { |pid| yield writes_of(pid) }
  end

  def writes_of(pid)
    found = family(pid, writes: 1)
    assert_empty found.problems
    found.workers.first.writes
  end
end
