# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/bundle"

# A real Rails, with the gems of the rails workload.
module RailsHelper
  GEMFILE = File.expand_path("../../../workloads/rails/Gemfile", __dir__)

  # @raise [Minitest::Skip] where the gems are not there
  def bundle
    found = Culet::Compare::Bundle.new(name: "rails", gemfile: GEMFILE)
    skip "the gems of the rails workload are not installed yet; CULET_TEST_ALL=1 installs them" unless found.installed? || all_tests?
    found.install(log: $stderr)
    found
  end
end
