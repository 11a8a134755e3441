# frozen_string_literal: true

require_relative "target_helper"

# Allocators that are recognized but not walked.
class ForeignAllocatorsTest < Minitest::Test
  include TargetHelper

  ALLOCATORS = %w[jemalloc tcmalloc mimalloc].freeze
  SCRIPT = 'X = Array.new(40_000) { |i| "x" * (1_100 + (i % 900)) }; puts "end"; $stdout.flush; sleep'

  def test_a_preloaded_allocator_is_reported_by_pages
    ALLOCATORS.each do |name|
      with_talker(RbConfig.ruby, "-e", SCRIPT, env: on(name)) do |pid, _, _|
        snapshot = read(pid)
        assert_equal [name, "pages"], [snapshot.allocator.name, snapshot.allocator.level]
        assert_match(/\AIts blocks cannot be read from outside: .*\.\z/, snapshot.allocator.why)
        assert_equal File.realpath(Culet::Allocators.parse(name).library), snapshot.allocator.library
        assert_nil snapshot.malloc
        heap = snapshot.mappings.map(&:to_h).select { |each| each["use"] == "malloc" }
        assert_operator heap.sum { |each| each["rss_bytes"] }, :>, 40 << 20, name
        assert_equal ["attributed to #{name}'s heap"], heap.map { |each| each["label"] }.uniq
        assert_operator snapshot.ruby.pages, :>, 10
      end
    end
  end

  # From outside, by doctor and from inside alike.
  def test_under_another_name
    directory = new_folder
    ALLOCATORS.each do |name|
      library = File.join(directory, "libfast.so")
      FileUtils.cp(File.realpath(Culet::Allocators.parse(name).library), library)
      script = "require 'culet'; require 'json'; puts JSON.generate([Culet.allocator, Culet.trim_stats[:allocator], Culet.trim]), 'end'; $stdout.flush; sleep"
      with_talker(RbConfig.ruby, "-I#{ROOT}/lib", "-e", script, env: on(library)) do |pid, lines, _|
        assert_equal [name, library], [read(pid).allocator.name, read(pid).allocator.library]
        inside, trimmed, bytes = JSON.parse(lines.first)
        assert_equal [name, Culet::Allocators.parse(name).version, library, name], [*inside.values_at("name", "version", "library"), trimmed]
        assert_kind_of Integer, bytes
        assert_equal name, JSON.parse(run_culet("doctor", pid.to_s, "--json").first).dig("allocator", "name")
      end
    end
  end

  # It exports malloc alone, so its file name identifies it.
  def test_snmalloc
    with_library("libsnmallocshim.so") do |library|
      with_talker("sh", "-c", "echo end; read x < /dev/zero", env: { "LD_PRELOAD" => library }) do |pid, _, _|
        assert_equal ["snmalloc", "pages", library], told(pid)
      end
    end
  end

  # Linked into the program: its own symbols tell.
  def test_in_the_program_itself
    with_program_of("int mallctl(void) { return 0; }\n") do |pid|
      assert_equal ["jemalloc", "pages", ""], told(pid)
    end
  end

  # Who serves malloc is what the C library calls, not what lies about in the process.
  def test_a_library_that_is_loaded_but_serves_nobody
    script = "require 'fiddle'; Fiddle.dlopen(ARGV.first); puts 'end'; $stdout.flush; sleep"
    with_library("libjemalloc.so") do |library|
      with_talker(RbConfig.ruby, "-e", script, library) { |pid, _, _| assert_equal %w[glibc blocks], told(pid).first(2) }
    end
  end

  def test_an_allocator_that_nobody_knows
    with_library("libown.so") do |library|
      with_talker("sh", "-c", "echo end; read x < /dev/zero", env: { "LD_PRELOAD" => library }) do |pid, _, _|
        assert_equal ["unknown", "pages", library], told(pid)
      end
    end
  end

  # Everything in one file, and no loader.
  def test_a_static_program
    directory = new_folder
    with_talker(compile_c(File.join(directory, "static"), MAIN, "-static")) do |pid, _, _|
      snapshot = read(pid)
      assert_includes %w[none glibc unknown], snapshot.allocator.name
      assert_includes snapshot.mappings.map { |mapping| mapping.to_h["label"] }, "static"
    end
  end

  private

  # A malloc that only grows.
  OWN = <<~C
    #include <stddef.h>
    static char pool[1 << 26];
    static size_t used;
    void *malloc(size_t bytes) { used = (used + 15) & ~(size_t)15; void *start = pool + used + 16; ((size_t *)start)[-1] = bytes; used += bytes + 16; return start; }
    void free(void *block) { (void)block; }
    void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
    void *realloc(void *old, size_t bytes)
    {
      char *new = malloc(bytes);
      for (size_t i = 0; old && i < bytes && i < ((size_t *)old)[-1]; i++) new[i] = ((char *)old)[i];
      return new;
    }
  C

  MAIN = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts(\"end\"); fflush(stdout); for (;;) pause(); }\n"
  private_constant :OWN, :MAIN

  def told(pid)
    allocator = read(pid).allocator
    [allocator.name, allocator.level, allocator.library]
  end

  # A library with a malloc of its own.
  def with_library(name)
    in_directory do |directory|
      yield compile_c(File.join(directory, name), OWN, "-O1", "-fno-builtin", "-shared", "-fPIC")
    end
  end

  # A program that brings its own malloc, and exports it as the linker does what a library calls.
  def with_program_of(more)
    in_directory do |directory|
      program = compile_c(File.join(directory, "own"), OWN + more + MAIN, "-O1", "-fno-builtin")
      with_talker(program) { |pid, _, _| yield pid }
    end
  end
end
