# frozen_string_literal: true

require_relative "requires_helper"

# The library that counts calls as an installed gem has it: below calls/ in the folder of its compiled files.
class RequiresBuildTest < Minitest::Test
  include RequiresHelper

  SCRIPT = "require 'native_build'; NativeBuild.new(destination: ARGV[0], scratch: ARGV[1], out: $stderr).send(:build_calls)"

  def test_the_gems_build_makes_the_counter
    _, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/ext", "-e", SCRIPT, path("gem/culet"), path("scratch"), env: TestHelper::NEUTRAL)
    assert_predicate status, :success?, err
    assert_equal ["culet-calls.so"], Dir.children(path("gem/culet/calls"))
    out, err, = run_program("sh", "-c", "echo heard", env: TestHelper::NEUTRAL.merge("LD_PRELOAD" => path("gem/culet/calls/culet-calls.so")))
    assert_equal ["heard\n", ""], [out, err]
  end

  def test_the_gem_has_the_sources
    files = Gem::Specification.load("#{ROOT}/culet.gemspec").files
    %w[calls/Makefile calls/calls.h calls/src/files.c trace/recorder/next.c ext/culet/requires.c lib/culet/tools/requires/page/flame.js lib/culet/unused.rb].each { |file| assert_includes files, file }
    assert_empty files.grep(%r{\Acalls/build})
  end
end
