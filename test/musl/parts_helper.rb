# frozen_string_literal: true

require "test_helper"

# Builds the parts in C for musl, with Debian's musl-gcc.
module MuslPartsHelper
  BUILD_SECONDS = 1800

  def assert_musl_gcc
    assert system("command -v musl-gcc > /dev/null"), "musl-gcc is not installed; run bin/setup, or `apt-get install musl-tools`"
  end

  # Two files of tests may build the same part at the same time: one waits for the other.
  #
  # @return [String] what make printed
  def make_for_musl(part, target)
    folder = File.join(TestHelper::ROOT, part)
    File.open(File.join(folder, "Makefile")) do |lock|
      lock.flock(File::LOCK_EX)
      out, = assert_success("make", "--no-print-directory", "-s", "-j2", "-C", folder, "LIBC=musl", target,
                            env: TestHelper::NEUTRAL.merge("MAKEFLAGS" => nil), patience: BUILD_SECONDS)
      out
    end
  end
end
