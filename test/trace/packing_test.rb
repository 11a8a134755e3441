# frozen_string_literal: true

require_relative "trace_helper"

# The recorder alone, without the verb: its files are whole as they are, and lose nothing by being packed.
class PackingTest < Minitest::Test
  include TraceHelper

  def raw(program, *arguments)
    assert_success(program, *arguments, env: NEUTRAL.merge("LD_PRELOAD" => Culet::Native.preloadable("replay", "culet-trace.so"), "CULET_TRACE_FILE" => path))
  end

  def test_a_packed_file_has_the_same_events
    raw(RbConfig.ruby, "--disable-gems", "-e", "Array.new(4) { |t| Thread.new { Array.new(3_000) { |i| 'x' * (i + t) } } }.each(&:join)")
    before = [operations, info, File.size(path)]
    assert Culet::Trace::Packing.new(path).call
    assert_equal before.first(2), [operations, info]
    assert_operator File.size(path), :<, before.last
    refute Culet::Trace::Packing.new(path).call, "it is packed already"
    assert_equal [path], Dir[File.join(@directory, "*")]
  end

  # A link of the name that the packed file once had until it was whole.
  def test_a_link_planted_beside_is_not_followed
    raw(compile("free(malloc(1001));"))
    File.write(path("victim"), "kept")
    File.symlink("victim", "#{path}.part")
    assert Culet::Trace::Packing.new(path).call
    assert_equal ["kept", true, false], [File.read(path("victim")), File.symlink?("#{path}.part"), File.symlink?(path)]
  end

  def test_a_file_that_is_recorded_into_is_left_alone
    program = compile("puts(\"up\"); fflush(stdout); pause();")
    with_program(program, env: NEUTRAL.merge("LD_PRELOAD" => Culet::Native.preloadable("replay", "culet-trace.so"), "CULET_TRACE_FILE" => path)) do
      refute Culet::Trace::Packing.new(path).call
    end
    assert Culet::Trace::Packing.new(path).call
  end

  def test_the_recorder_without_a_file_records_nothing
    _, err = assert_success(compile("free(malloc(1001));"), env: NEUTRAL.merge("LD_PRELOAD" => Culet::Native.preloadable("replay", "culet-trace.so")))
    assert_equal ["", ["program", "program.c"]], [err, Dir.children(@directory).sort]
  end
end
