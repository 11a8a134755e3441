# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../bench/preamble"
require_relative "../bench/hardening/hardening"

# bench/hardening/run: the attacks build, and their outcomes are told apart.
class HardeningBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/hardening/run")
  COLLECTION = File.join(ROOT, "bench/hardening/collection")

  # Built once for all tests.
  BUILT = TestHelper.lasting_folder

  # glibc leaves the addresses of a list in freed blocks; culet writes nothing there.
  def test_outcomes_under_glibc_and_culet
    folder = new_folder
    out, err, status = bench("double-40", "read-address-4000", "overread-40-by-million", "--runs", "2", "--allocators",
                             "glibc,culet", "--json", "#{folder}/all.json", "--out", "#{folder}/rows.json")
    assert status.success?, err
    outcomes = JSON.parse(File.read("#{folder}/all.json"))
    assert_equal [["double-40", "glibc", "stopped", 2], ["double-40", "culet", "stopped", 2],
                  ["read-address-4000", "glibc", "succeeded", 1], ["read-address-4000", "culet", "no_effect", 2],
                  ["overread-40-by-million", "glibc", "succeeded", 1],
                  ["overread-40-by-million", "culet", "succeeded", 1]],
                 outcomes.map { |one| one.values_at("attack", "contender", "outcome", "attempts") }
    assert_match(/\Aculet: double free of 0x\h+: /, outcomes[1]["message"])
    assert_match(/^\| all \| 3 \| 33 % \| 67 % \|$/, out)
    assert_match(/^\| read-address-4000 \| .* \| \*\*succeeded\*\* \| no effect \|$/, out)
    rows = JSON.parse(File.read("#{folder}/rows.json")).fetch("results")
    assert_equal [["all", "glibc", 33.3], ["all", "culet", 66.7], ["Double free", "glibc", 100.0]],
                 rows.first(3).map { |row| row.values_at("subject", "contender", "median") }
  end

  # Its memory is never reused, and free accepts everything: attacks on reuse have no effect, those on neighbours do.
  def test_outcomes_under_an_allocator_that_never_frees
    folder = new_folder
    build_library("#{folder}/bump.so", "")
    out, err, status = bench("double-free", "read-40", "overflow-40-by-32", "--runs", "1", "--allocators", "bump=#{folder}/bump.so")
    assert status.success?, err
    outcomes = out.scan(/^\| ([\w-]+) \| [^|]* \| (stopped|no effect|\*\*succeeded\*\*) \|$/).to_h
    assert_equal ["**succeeded**"], outcomes.values_at("read-40", "overflow-40-by-32").uniq
    assert_equal ["no effect"], outcomes.except("read-40", "overflow-40-by-32").values.uniq
    assert_operator outcomes.size, :>, 10
  end

  # bench/hardening/collection: a checkout with one program in C, built in three sizes, and one in C++.
  def test_programs_of_a_collection
    folder = new_folder
    FileUtils.mkdir_p("#{folder}/bench/security")
    File.write("#{folder}/bench/security/twice.c", <<~C)
      #include <stdio.h>
      #include <stdlib.h>
      int main(void) { void *volatile block = malloc(ALLOCATION_SIZE); free(block); free(block); puts("NOT_CAUGHT"); }
    C
    File.write("#{folder}/bench/security/nothing.cc", "#include <cstdio>\nint main() { puts(\"NOT_CAUGHT\"); }\n")
    build_library("#{folder}/bump.so", "")
    out, err, status = collection("--sources", folder, "--build", "#{folder}/built", "--runs", "1", "--missed",
                                  "--allocators", "culet,bump=#{folder}/bump.so")
    assert status.success?, err
    assert_includes out, "| 4 programs |"
    assert_includes out, "| culet | 3 | 3 |"
    assert_includes out, "| bump | 0 | 0 |"
    assert_includes err, "culet misses nothing\n"
  end

  def test_a_collection_that_is_not_there
    _, err, status = collection("--sources", "/nowhere")
    assert_equal 1, status.exitstatus
    assert_includes err, "there is no mimalloc-bench in /nowhere; get it by `git clone"
  end

  def test_a_diagnostic_is_kept
    folder = new_folder
    build_library("#{folder}/strict.so", 'write(2, "\nno frees here\n", 15); abort();')
    _, err, status = bench("double-40", "--runs", "1", "--allocators", "strict=#{folder}/strict.so", "--json", "#{folder}/all.json")
    assert status.success?, err
    assert_equal [["stopped", "no frees here"]], JSON.parse(File.read("#{folder}/all.json")).map { |one| one.values_at("outcome", "message") }
  end

  def test_an_attempt_that_hangs_has_succeeded
    assert_equal :succeeded, outcome(nil, "malloc /libc.so.6\n", "").kind
  end

  # A crash after the effect does not undo it.
  def test_the_effect_counts_before_the_end
    assert_equal :succeeded, outcome(ended("kill -ABRT $$"), "malloc /libc.so.6\nsucceeded\n", "").kind
    assert_equal [:stopped, "signal ABRT"], outcome(ended("kill -ABRT $$"), "malloc /libc.so.6\n", "").to_a
    assert_equal :no_effect, outcome(ended("exit 0"), "malloc /libc.so.6\nno effect\n", "").kind
  end

  def test_an_attack_that_cannot_be_made_is_no_result
    error = assert_raises(Culet::Error) { outcome(ended("exit 1"), "malloc /libc.so.6\n", "probe: malloc(40) gave nothing\n") }
    assert_equal "some-attack cannot be made with glibc: probe: malloc(40) gave nothing", error.message
    error = assert_raises(Culet::Error) { outcome(ended("exit 0"), "malloc /other.so\nno effect\n", "") }
    assert_match(/the preload did not take/, error.message)
    error = assert_raises(Culet::Error) { outcome(ended("exit 127"), "", "no such file\n") }
    assert_match(/no library \(no such file\)/, error.message)
  end

  def test_every_attack_has_a_name_of_its_own
    out, err, status = bench("--list")
    assert status.success?, err
    names = out.lines.map { |line| line[/\S+/] }
    assert_operator names.size, :>=, 100
    assert_equal names.uniq, names
    assert(out.lines.all? { |line| line.split.size > 4 }, "each has an effect")
  end

  def test_wrong_words
    { ["nonesuch"] => /there is no attack or family nonesuch/, ["--runs", "0"] => /--runs 0; at least 1/,
      ["--allocators", "nonesuch"] => /no allocator "nonesuch"/ }.each do |words, message|
      out, err, status = bench(*words)
      assert_equal 2, status.exitstatus, words.inspect
      assert_match message, err
      assert_empty out
    end
  end

  private

  def collection(*words) = run_program(RbConfig.ruby, "-w", COLLECTION, *words, env: NEUTRAL)

  def bench(*words) = run_program(RbConfig.ruby, "-w", BENCH, "--build", BUILT, *words, env: NEUTRAL)

  def outcome(status, out, err)
    attack = HardeningBench::Attack.new(name: "some-attack", program: "none")
    ended = Bench::Execution::Ended.new(status, out, err, 10)
    HardeningBench::Attempt.new(attack, Bench::Contender.new("glibc")).send(:outcome, ended)
  end

  def ended(script) = Open3.capture2e("sh", "-c", script).last

  # An allocator that hands out new memory each time. `free`: what its free does with a block.
  def build_library(path, free)
    compile_c(path, <<~C, "-O1", "-fno-builtin", "-shared", "-fPIC")
      #include <stdlib.h>
      #include <string.h>
      #include <unistd.h>
      static _Alignas(16) char memory[512 << 20];
      static size_t used;
      void *malloc(size_t bytes)
      {
          char *block = memory + used + 16;
          if (bytes > sizeof memory - used - 32) return NULL;
          used += 16 + ((bytes + 15) & ~(size_t)15);
          memcpy(block - 16, &bytes, sizeof bytes);
          return block;
      }
      void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
      void free(void *block) { if (!block) return; #{free} }
      void *realloc(void *block, size_t bytes)
      {
          size_t before = 0;
          if (block) memcpy(&before, (char *)block - 16, sizeof before);
          if (block && !bytes) return NULL;
          void *moved = malloc(bytes);
          return moved && block ? memcpy(moved, block, before < bytes ? before : bytes) : moved;
      }
    C
  end
end
