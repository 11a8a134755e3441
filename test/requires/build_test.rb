# frozen_string_literal: true

require_relative "requires_helper"

# The syscall counter in an installed gem: below boot/syscall_counter/ in the folder of the compiled files.
class RequiresBuildTest < Minitest::Test
  include RequiresHelper

  SCRIPT = "require 'native_build'; NativeBuild.new(destination: ARGV[0], scratch: ARGV[1], out: $stderr)" \
           ".build_part('boot/syscall_counter')"

  def test_the_gems_build_makes_the_counter
    assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/ext", "-e", SCRIPT, path("gem/culet"), path("scratch"), env: TestHelper::NEUTRAL)
    assert_equal ["culet-syscall-counter.so"], Dir.children(path("gem/culet/boot/syscall_counter"))
    library = path("gem/culet/boot/syscall_counter/culet-syscall-counter.so")
    out, err, = run_program("sh", "-c", "echo heard", env: TestHelper::NEUTRAL.merge("LD_PRELOAD" => library))
    assert_equal ["heard\n", ""], [out, err]
  end

  def test_the_gem_has_the_sources
    files = Gem::Specification.load("#{ROOT}/culet.gemspec").files
    %w[boot/syscall_counter/Makefile boot/syscall_counter/syscall_counter.h boot/syscall_counter/src/files.c replay/interposer/next.c
       boot/ext/recorder/recorder.c boot/lib/report/page/requires.js lib/culet/render/page/flame.js boot/lib/unused.rb lib/culet/unused.rb].each { |file| assert_includes files, file }
    assert_empty files.grep(%r{\Aboot/syscall_counter/build})
  end
end
