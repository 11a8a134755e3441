# frozen_string_literal: true

require "minitest"
require_relative "limits"

module Culet
  # Adds `assert_rss_below`, `assert_shared_after_fork` and `assert_no_memory_growth` to every Minitest test.
  module MinitestLimits
    include Limits

    private

    def culet_assert(passed, &message) = assert(passed, message)
  end
end

Minitest::Test.include(Culet::MinitestLimits)
