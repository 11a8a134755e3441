# frozen_string_literal: true

require_relative "../trace/trace_helper"
require_relative "../cross_tools"

# Recorder and replay for the other processor. A trace of one is played by the other.
class TraceAarch64Test < Minitest::Test
  include TraceHelper
  include CrossTools

  EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"].freeze

  def test_it_records_and_plays_there_and_each_plays_the_others_traces
    assert_success("make", "-s", "-C", "#{ROOT}/replay", "CC=#{CROSS}", "BUILD=#{path("build")}", env: { "MAKEFLAGS" => nil })
    program = compile("free(malloc(1001)); if (!fork()) { free(malloc(1003)); _exit(0); } wait(NULL);", language: CROSS)
    assert_success(*EMULATOR, "-E", "LD_PRELOAD=#{path("build/culet-trace.so")}", "-E", "CULET_TRACE_FILE=#{path}", program, env: NEUTRAL)
    assert_equal [2, [%w[malloc 1001]]], [files.size, asked(1001, 1003)]
    assert_equal [%w[malloc 1001], %w[malloc 1003]], asked(1001, 1003, file: path(files.last))

    FIXTURES.each do |file|
      out, = assert_success(*EMULATOR, path("build/culet-replay"), "--touch", "check", file)
      assert_equal info(file), JSON.parse(out)["trace"]
    end
  end
end
