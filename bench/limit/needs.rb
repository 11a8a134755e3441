# frozen_string_literal: true

require "rbconfig"
require "culet/system/clock"
require "culet/system/subprocess"
require_relative "group"

module Limits
  # A program in control groups: the least limit in which it survives, and how long it takes in a limit.
  class Needs
    # Starts of a program that must all survive.
    STARTS = 3
    # A program that makes no progress counts as killed.
    PATIENCE = 120
    MOST = 1024

    # @param words [Array<String>] what Ruby runs
    # @param part [String, nil] of culet, which it loads
    def initialize(words, part:)
      @command = [RbConfig.ruby, "-I#{Bench::ROOT}/lib", *("-r#{part}" if part), *words]
      @environment = { "RUBYOPT" => nil, "CULET_LIMIT" => nil, "CULET_TRIM" => nil, "CULET_BLACKBOX" => nil }
    end

    # @return [Integer] MiB, by bisection
    # @raise [Culet::Error] if it does not survive in a GiB
    def mebibytes
      (5..MOST).bsearch { |size| survives?(size) } or
        raise Culet::Error, "#{@command.last} does not survive in #{MOST} MiB"
    end

    # @param mebibytes [Integer] the limit
    # @return [Float, nil] seconds; nil: it did not survive
    def seconds(mebibytes)
      Group.with(mebibytes << 20) do |group|
        began = Culet::Clock.now
        _, status = Culet::Subprocess.run(@environment, *group.command(*@command), seconds: PATIENCE)
        Culet::Clock.now - began if status&.success?
      end
    end

    private

    def survives?(mebibytes) = STARTS.times.all? { seconds(mebibytes) }
  end
end
