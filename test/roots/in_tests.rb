# frozen_string_literal: true

require_relative "roots"

module Roots
  # For tests, which use roots under --all alone.
  module InTests
    private

    # @param name [String] a key of RUBIES
    # @param packages [Array<String>] Debian packages that it has to have besides
    # @return [Root]; where it is not to be had, the test is skipped
    def root(name, packages: []) = root_or_skip { Roots.get(name, packages: packages) }

    # As Roots.plain; where it is not to be had, the test is skipped.
    def plain_root(suite, packages: []) = root_or_skip { Roots.plain(suite, packages: packages) }

    # As Roots.foreign; where it is not to be had, the test is skipped.
    def foreign_root(suite, packages:) = root_or_skip { Roots.foreign(suite, packages: packages) }

    def root_or_skip
      skip_unless_all

      yield
    rescue Missing => e
      skip e.message
    end
  end
end
