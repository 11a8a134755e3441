# frozen_string_literal: true

require_relative "../musl/parts_helper"

# The PLT entries of a program by glibc's loader, which relocates the addresses in the dynamic section, and by musl's,
# which leaves them as they are in the file.
class PltHookTest < Minitest::Test
  include MuslPartsHelper

  def assert_hooked(compiler)
    program = File.join(new_folder, "program")
    sources = ["#{__dir__}/plt_hook.c", "#{ROOT}/boot/ext/feature_index/plt_hook.c"]
    assert_success(compiler, "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I#{ROOT}/boot/ext", "-o", program, *sources, "-ldl")
    assert_equal "/ 1 replaced 0\n", assert_success(program).first
  end

  def test_glibc = assert_hooked("cc")

  def test_musl
    assert_musl_gcc
    assert_hooked("musl-gcc")
  end
end
