# frozen_string_literal: true

require_relative "scope_helper"

# The reader of processes as an installed gem has it: below reader/ in the folder of its compiled files.
class ScopeBuildTest < Minitest::Test
  include ScopeHelper

  SCRIPT = "require 'native_build'; NativeBuild.new(destination: ARGV[0], scratch: ARGV[1], out: $stderr)" \
           ".build_part('reader')"

  def test_the_gems_build_makes_the_program
    directory = new_folder
    assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/ext", "-e", SCRIPT, "#{directory}/culet", "#{directory}/scratch", env: NEUTRAL)
    assert_equal ["reader"], Dir.children("#{directory}/culet")
    out, = assert_success("#{directory}/culet/reader/culet-scope", Process.pid, env: NEUTRAL)
    assert_equal Process.pid, Culet::Scope::Builder.new(out).call.pid
  end

  def test_the_gem_has_the_sources
    files = Gem::Specification.load("#{ROOT}/culet.gemspec").files
    %w[reader/Makefile reader/format.h reader/src/main.c reader/layouts/glibc_chunk.h reader/layouts/ruby_slot.h lib/culet/scope.rb
       lib/culet/tools/report.rb lib/culet/cli/report.rb].each do |file|
      assert_includes files, file
    end
    assert_empty files.grep(%r{\Areader/(build|test)|\.snapshot\z})
  end

  # A checkout in which it is not built: here a copy of the Ruby files alone.
  def test_without_the_program_a_sentence_says_so
    directory = new_folder
    FileUtils.cp_r("#{ROOT}/lib", directory)
    FileUtils.rm_f("#{directory}/lib/culet/culet.so")
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{directory}/lib", "#{ROOT}/exe/culet", "report", Process.pid, env: NEUTRAL)
    assert_equal [1, "", "culet: reader/culet-scope is not built: run `gem pristine culet --extensions`\n"], [status.exitstatus, out, err]
  end
end
