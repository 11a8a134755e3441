# frozen_string_literal: true

require "fileutils"
require_relative "foreign"
require_relative "maker"
require_relative "root"

# Debian releases of their own, each in a folder that tests enter by chroot: other C libraries, compilers and Rubies than
# this machine's. A root is made once, by debootstrap, and kept; it is the same that bench/debian uses.
#
#   root = Roots.get("bullseye")
#   program = root.compile("program", "/mnt/program.c", share: directory)     # makes directory/program
#   spawn(*root.command(program, share: directory))      # the process has the number that spawn returns
module Roots
  # A root is not there and cannot be made here; the message says why, and is what a test skips with.
  class Missing < StandardError; end

  # By the name of the release: the Rubies that are wanted besides its own.
  RUBIES = { "bullseye" => [], "trixie" => [], "testing" => ["3.4"] }.freeze

  # What tests need inside.
  PACKAGES = %w[ca-certificates gcc libc6-dev libjemalloc2 make python3 ruby].freeze

  module_function

  # Makes the root if it is not there: some minutes and 0.6 GB. Who asks meanwhile waits.
  #
  # @param name [String] a key of RUBIES
  # @param packages [Array<String>] Debian packages that it has to have besides
  # @return [Root]
  # @raise [Missing] where it cannot be had
  # @raise [RuntimeError] where making it failed although it could be had
  def get(name, packages: [])
    @roots ||= {}
    @roots[[name, packages]] ||= Maker.new(name, path(name), packages: PACKAGES + packages, rubies: RUBIES.fetch(name)).call
  end

  # As debootstrap leaves it, like the images that are published: without the packages above.
  #
  # @param suite [String] name of a release of Debian or Ubuntu
  # @param packages [Array<String>] that it has to have
  # @return [Root]
  # @raise as `get`
  def plain(suite, packages: []) = Maker.new(suite, path("#{suite}-plain"), packages: packages).call

  # For aarch64. The packages are part of its name: more cannot be installed.
  #
  # @raise as `get`
  def foreign(suite, packages:)
    name = "#{suite}-aarch64-#{Digest::SHA256.hexdigest(packages.join(" "))[0, 8]}"
    ForeignMaker.new(suite, path(name), packages: packages).call
  end

  # @return [String] where the root of this name is, or would be
  def path(name) = File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "culet/roots", name)
end
