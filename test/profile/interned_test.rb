# frozen_string_literal: true

require "test_helper"
require "rbconfig"

# The tables of label sets and types: ext/culet/profile/interned.c alone, without Ruby.
class ProfileInternedTest < Minitest::Test
  HEADERS = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |folder| "-I#{folder}" }
  SOURCES = %w[ext/culet/profile/interned.c ext/culet/profile/texts.c sampler/core/index.c].freeze

  # The thread of the black box writes the tables without the GVL.
  def test_a_forked_child_can_use_a_table_that_another_thread_was_using
    program = TestHelper.build("-std=c11", "-D_GNU_SOURCE", "-Wno-unused-parameter", "-I#{ROOT}/ext/culet", "-I#{ROOT}", *HEADERS,
                               "#{ROOT}/test/profile/interned.c", *SOURCES.map { |path| "#{ROOT}/#{path}" }, "-pthread")
    _, err, status = run_program(program)
    assert_predicate status, :success?, "#{status} #{err}"
  end
end
