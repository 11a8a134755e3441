# frozen_string_literal: true

require "rspec/core"
require "rspec/expectations"
require_relative "limits"

module Culet
  # Adds `assert_rss_below` and `assert_shared_after_fork` to every RSpec example.
  module RSpecLimits
    include Limits

    private

    def culet_assert(passed) = passed || RSpec::Expectations.fail_with(yield)
  end
end

RSpec.configure { |config| config.include(Culet::RSpecLimits) }
