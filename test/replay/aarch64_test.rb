# frozen_string_literal: true

require_relative "../trace/trace_helper"

# Recorder and replay for the other processor: built by Debian's cross compiler, run under qemu's emulation. A trace of
# one is played by the other.
class TraceAarch64Test < Minitest::Test
  include TraceHelper

  CROSS = "aarch64-linux-gnu-gcc"
  EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"].freeze

  def setup
    super
    skip_unless_all
    missing = [CROSS, EMULATOR.first].reject { |name| ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, name)) } }
    skip "#{missing.join(" and ")} not installed" if missing.any?
    skip "this machine is one" if RbConfig::CONFIG["host_cpu"] == "aarch64"
  end

  def test_it_records_and_plays_there_and_each_plays_the_others_traces
    assert_success("make", "-s", "-C", "#{ROOT}/replay", "CC=#{CROSS}", "BUILD=#{path("build")}", env: { "MAKEFLAGS" => nil })
    program = compile("free(malloc(1001)); if (!fork()) { free(malloc(1003)); _exit(0); } wait(NULL);", language: CROSS)
    assert_success(*EMULATOR, "-E", "LD_PRELOAD=#{path("build/culet-trace.so")}", "-E", "CULET_TRACE_FILE=#{path}", program, env: NEUTRAL)
    assert_equal [2, [%w[malloc 1001]]], [files.size, asked(1001, 1003)]
    assert_equal [%w[malloc 1001], %w[malloc 1003]], asked(1001, 1003, file: path(files.last))

    FIXTURES.each do |file|
      out, = assert_success(*EMULATOR, path("build/culet-replay"), "--touch", "check", "--samples", "10", file)
      assert_equal info(file), JSON.parse(out)["trace"]
    end
  end
end
