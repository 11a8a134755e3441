# frozen_string_literal: true

require_relative "trace_helper"

# The parts as an installed gem has them: below replay/ and sampler/ in the folder of its compiled files.
class TraceBuildTest < Minitest::Test
  include TraceHelper

  SCRIPT = "require 'native_build'; NativeBuild.new(destination: ARGV[0], scratch: ARGV[1], out: $stderr)" \
           ".then { |build| %w[replay sampler].each { |part| build.build_part(part) } }"

  def test_the_gems_build_makes_recorder_and_player
    assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/ext", "-e", SCRIPT, path("gem/culet"), path("scratch"), env: NEUTRAL)
    assert_equal %w[culet-replay culet-trace.so], Dir.children(path("gem/culet/replay")).sort
    assert_equal %w[culet-sampler.so], Dir.children(path("gem/culet/sampler"))

    program = compile("free(malloc(1001));")
    assert_success(program, env: NEUTRAL.merge("LD_PRELOAD" => path("gem/culet/replay/culet-trace.so"), "CULET_TRACE_FILE" => path))
    out, = assert_success(path("gem/culet/replay/culet-replay"), "--list", path)
    assert_equal ["0 0 malloc 0 1001\n", "1 0 free 0\n"], out.lines
  end

  def test_the_gem_has_the_sources
    files = Gem::Specification.load("#{ROOT}/culet.gemspec").files
    %w[replay/Makefile replay/format.h replay/interposer/api.c replay/recorder/hooks.h replay/player/main.c sampler/preload/live.c
       lib/culet/tools/trace.rb lib/culet/cli/replay.rb].each do |file|
      assert_includes files, file
    end
    assert_empty files.grep(%r{\A(?:replay|sampler)/(?:build|test)|\.trace\z})
  end
end
