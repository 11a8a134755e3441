# frozen_string_literal: true

require "test_helper"
require_relative "../../roots/checkout"
require_relative "../../roots/in_tests"

# On Ruby 3.3 workers of a Puma cluster do not always end by SIGTERM, without culet either: what the README says ends them.
class PumaTermTest < Minitest::Test
  include Roots::InTests

  RUBY = "3.3"
  STARTS = 8
  TIMEOUT_SECONDS = 5
  # For a busy machine.
  PATIENCE_SECONDS = 180

  def test_clusters_end_by_the_masters_timeout_with_and_without_culet
    root = root("trixie", packages: Roots::Checkout.packages(RUBY) + %w[puma])
    share = new_folder
    checkout = Roots::Checkout.new(root, RUBY, share: share)
    out, = assert_success(*checkout.command("bench/sigterm/run", "--starts", STARTS, "--timeout", TIMEOUT_SECONDS,
                                            "--grace", PATIENCE_SECONDS, "--patience", PATIENCE_SECONDS),
                          env: NEUTRAL, patience: 2 * STARTS * PATIENCE_SECONDS)
    %w[plain plugin].each { |contender| assert_includes out.lines(chomp: true), "| #{contender} | #{STARTS} | 0 | 0 |" }
  end
end
