# frozen_string_literal: true

require "test_helper"
require_relative "checkout"
require_relative "in_tests"

# Tests of this checkout run inside Debian roots, by the Rubies there: of what reads Ruby's own structures or listens to its
# collector, and so may be another thing on another Ruby.
class RootsRubiesTest < Minitest::Test
  include Roots::InTests

  # By the name of the root: the version of its Ruby.
  RUBIES = { "trixie" => "3.3", "testing" => "3.4" }.freeze
  # Files by what they test. Those that want a browser run where there is one.
  FILES = { "strings" => %w[strings/analysis strings/dump strings/live strings/verb],
            "requires" => %w[requires/behaviour requires/build requires/calls requires/tree requires/unused requires/verb],
            "feature_index" => %w[feature_index/feature_index feature_index/require feature_index/store],
            "trim" => %w[trim/policy trim/process trim/return trim/settings trim/warmup trim/warmup_requests],
            # Not Puma: its clusters do not always end on these Rubies, without culet either.
            "servers" => %w[servers/pitchfork/pitchfork servers/sidekiq/quiet_periods servers/sidekiq/sidekiq] }.freeze
  # That of two boxes: these Rubies have none.
  SKIPS = { "trim" => 1 }.freeze
  # The other allocators, and what the servers need.
  PACKAGES = %w[libmimalloc3 libtcmalloc-minimal4t64 redis-tools ruby-bundler].freeze
  # Of one group of files; a few minutes where it is alone.
  SECONDS = 1_200

  RUBIES.each do |name, version|
    FILES.each do |what, files|
      define_method("test_#{what}_on_ruby_#{version.tr(".", "_")}") do
        checkout = checkout(name, version)
        words = ["-w", "-Ilib", "-Itest", "-r./bin/gems.rb", "test/run_all.rb", Roots::Checkout::PATH, *files.map { |file| "test/#{file}_test.rb" }]
        out, = assert_success(*checkout.command(*words, env: { "CULET_TEST_ALL" => "1" }), env: NEUTRAL, patience: SECONDS)
        assert_match(/^[1-9]\d+ runs, \d+ assertions, 0 failures, 0 errors, #{SKIPS.fetch(what, 0)} skips$/, out)
      end
    end
  end

  # What tests of one Ruby share is built once.
  def self.checkouts = @checkouts ||= {}

  private

  def checkout(name, version)
    self.class.checkouts[name] ||= begin
      root = root(name, packages: Roots::Checkout.packages(version) + PACKAGES)
      Roots::Checkout.new(root, version, share: TestHelper.lasting_folder)
    end
  end
end
