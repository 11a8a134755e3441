# frozen_string_literal: true

require_relative "roots"

module Roots
  # For tests, which use roots under --all alone.
  module InTests
    private

    # @param name [String] a key of RUBIES
    # @param packages [Array<String>] Debian packages that it has to have besides
    # @return [Root]; where it is not to be had, the test is skipped
    def root(name, packages: [])
      skip "run by bin/test --all" unless all_tests?

      Roots.get(name, packages: packages)
    rescue Missing => e
      skip e.message
    end
  end
end
