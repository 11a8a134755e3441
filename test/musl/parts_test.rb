# frozen_string_literal: true

require_relative "parts_helper"

# The parts in C, built for musl with Debian's musl-gcc, and a bounded part of their C tests. `bin/test --all` runs all.
class MuslPartsTest < Minitest::Test
  include MuslPartsHelper

  TARGETS = { "allocator" => "test-quick", "sampler" => "test" }.freeze

  def setup = assert_musl_gcc

  TARGETS.each do |part, target|
    define_method(:"test_#{part}") do
      skip_unless_all unless part == "allocator"
      out = make_for_musl(part, all_tests? ? "test" : target)
      assert_match(/^ *ok /, out)
      refute_match(/^ *not ok /, out)
    end
  end

  def test_the_reader
    out = make_for_musl("reader", all_tests? ? "test" : "test-musl")
    assert_match(/^ok linked_statically/, out)
    refute_match(/^not ok /, out)
  end

  def test_the_extensions_compile_with_musls_headers
    make_for_musl("reader", "reader") # links the kernel's headers
    sources = Dir["{ext/culet,boot/ext,sampler/core}/**/*.c", base: ROOT].grep_v(%r{/test/})
    refute_empty sources
    _, err = assert_success("musl-gcc", "-fsyntax-only", *include_flags, *sources.map { |source| File.join(ROOT, source) },
                            env: NEUTRAL, patience: BUILD_SECONDS)
    assert_empty err
  end

  private

  def include_flags
    config = RbConfig::CONFIG
    folders = [config["rubyhdrdir"], config["rubyarchhdrdir"], "#{ROOT}/ext/culet", "#{ROOT}/boot/ext", ROOT]
    jobs = File.read(File.join(config["rubyhdrdir"], "ruby/debug.h")).include?("rb_postponed_job_preregister")
    ["-D_GNU_SOURCE", *("-DHAVE_RB_POSTPONED_JOB_PREREGISTER" if jobs), "-idirafter", "#{ROOT}/reader/build/musl/kernel-headers",
     *folders.map { |folder| "-I#{folder}" }]
  end
end
