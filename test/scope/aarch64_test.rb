# frozen_string_literal: true

require_relative "../cross_tools"
require_relative "exact_figures"
require_relative "target_helper"

# The reader for the other processor, built by Debian's cross compiler and run under qemu's emulation; heaps of that
# processor's glibc, which look to a reader outside as they do there; and larger pages, which the emulator tells its
# programs of.
#
# An emulated reader cannot stop anyone (qemu-user has no ptrace), so it reads what stands still.
class ScopeAarch64Test < Minitest::Test
  include TargetHelper
  include ExactFigures
  include CrossTools

  LIBRARIES = "/usr/aarch64-linux-gnu"
  # The emulator has a C library of its own, of this machine: without large blocks it cannot be taken for the program's.
  EMULATOR = ["qemu-aarch64", "-U", "MALLOC_MMAP_MAX_"].freeze
  OF_THE_EMULATOR = { "MALLOC_MMAP_MAX_" => "0" }.freeze
  PAGES = [4096, 16_384, 65_536].freeze
  UNITS = Dir["#{ROOT}/reader/test/unit/*.c"].map { |file| File.basename(file, ".c") }.freeze
  # Not those that need a mapping called [heap]: the emulator's has no name.
  HEAPS = ["mixed 1 5", "mixed 8 20", "small 4 10", "large 4 60", "aligned 3 8", "trimmed 4 20", "churned 8 20"].freeze

  def test_its_parts_by_themselves
    in_directory do |directory|
      programs = UNITS.map { |name| "#{directory}/test/unit/#{name}" }
      make(directory, "UNIT_CFLAGS=-std=gnu11 -pthread -Isrc -I.. -I../allocator/test -O1 -g", *programs)
      programs.product(PAGES) do |program, page|
        out, err, status = run_program(*emulator("-p", page), program, env: NEUTRAL)
        assert_predicate status, :success?, "#{program} with pages of #{page} bytes: #{out}#{err}"
        assert_match(/^ok /, out)
      end
    end
  end

  def test_the_reader
    in_directory do |directory|
      make(directory, "reader")
      with_target_of(directory, "cc") do |program|
        HEAPS.each do |words|
          with_heap(program, words, env: {}) do |pid, figures|
            [[], ["--live"]].each do |options|
              assert_read(figures, [*emulator, "#{directory}/culet-scope", *options, pid], words) { |problems| problems.grep_v(/was read while it ran/) }
            end
          end
        end
      end
    end
  end

  def test_heaps_of_its_glibc
    in_directory do |directory|
      with_target_of(directory, CROSS) do |program|
        HEAPS.each do |words|
          with_heap(*emulator, program, words) do |pid, figures|
            [[], ["--stop"], ["--live"]].each { |options| assert_read(figures, [Culet::Native.part("reader", "culet-scope"), *options, pid], words) }
          end
        end
      end
    end
  end

  # The reader is told of the same pages as the program.
  def test_larger_pages
    in_directory do |directory|
      shim = File.join(directory, "pages.so")
      compile("cc", shim, "-shared", "-fPIC", File.join(TARGETS, "pages.c"))
      libraries = padded_libraries(directory)
      with_target_of(directory, CROSS) do |program|
        HEAPS.product(PAGES) do |words, page|
          with_heap(*emulator("-p", page, libraries: libraries), program, words) do |pid, figures|
            assert_equal page, figures.fetch("page")
            [[], ["--stop"], ["--live"]].each do |options|
              command = [Culet::Native.part("reader", "culet-scope"), *options, pid]
              assert_equal page, assert_read(figures, command, "#{words}, pages of #{page} bytes", "LD_PRELOAD" => shim, "PAGES_BYTES" => page.to_s)
            end
          end
        end
      end
    end
  end

  private

  def emulator(*words, libraries: LIBRARIES) = [*EMULATOR, *words, "-L", libraries]

  # A file's last page, where it is larger than this machine's, ends before the file does: then the emulator maps nothing,
  # but reads. With some more bytes at their ends the C library's pages are the file's, as they are on a machine of such
  # pages.
  def padded_libraries(directory)
    path = File.join(directory, "libraries")
    FileUtils.mkdir_p("#{path}/lib")
    %w[ld-linux-aarch64.so.1 libc.so.6].each do |name|
      File.binwrite("#{path}/lib/#{name}", File.binread("#{LIBRARIES}/lib/#{name}") + ("\0" * (2 * PAGES.max)), perm: 0o755)
    end
    path
  end

  def make(directory, *words)
    _, err, status = run_program("make", "-s", "-C", "#{ROOT}/reader", "CC=#{CROSS}", "AR=aarch64-linux-gnu-ar", "BUILD=#{directory}", *words,
                                 env: { "MAKEFLAGS" => nil })
    assert_equal [true, ""], [status.success?, err]
  end

  def compile(language, output, *words)
    _, err, status = run_program(language, "-O1", "-g", "-pthread", "-fno-builtin", "-Wall", "-Wextra", "-o", output, *words)
    assert_equal [true, ""], [status.success?, err]
  end

  def with_target_of(directory, language)
    program = File.join(directory, "heap")
    compile(language, program, "#{ROOT}/reader/test/targets/heap.c")
    yield program
  end

  # @yieldparam pid [Integer] a process that has stopped itself
  # @yieldparam figures [Hash{String => Integer}] what malloc in it said
  def with_heap(*command, words, env: OF_THE_EMULATOR)
    with_frozen(*command, *words.split, env: env, last: /\Amallinfo /) { |pid, lines, _| yield pid, figures_in(lines.last) }
  end

  # @yield [problems] those that count, where not all do
  # @return [Integer] bytes of a page, as the reader has it
  def assert_read(figures, command, about, env = {})
    out, = assert_success(*command, env: NEUTRAL.merge(env))
    records = out.b.scan(/\{"kind":.*?\}/n).map { |text| JSON.parse(text) }.group_by { |record| record["kind"] }
    problems = records.fetch("problem", []).map { |record| record["sentence"] }
    problems = yield problems if block_given?
    assert_equal %w[glibc blocks], records.fetch("allocator").first.values_at("name", "level"), about
    assert_figures(figures, records.fetch("malloc").first, problems, "#{about}: #{command.join(" ")}")
    records.fetch("process").first.fetch("page_bytes")
  end
end
