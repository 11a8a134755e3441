# frozen_string_literal: true

require_relative "../culet"
require_relative "runtime/trim/settings"

module Culet
  # From now on each major garbage collection of this process, and of those it forks, is followed by a trim: what the
  # collection freed goes back to the kernel. CULET_TRIM says otherwise, see Trim::Settings. Where it cannot be, that is
  # said once on standard error, and the program runs on.
  #
  # From the extension comes Culet::Trim.start(at_once, minimum_bytes, interval_seconds): nil, or why not, in words.
  module Trim
    # @param settings [Settings]
    # @return [Array<String>] what is to be told to whoever runs the program: a sentence each
    def self.begin(settings)
      problems = settings.problems.dup
      return problems if settings.mode == "off"
      return problems << "no memory will be given back: #{Native.missing_reason("culet.so")}" unless Culet.native?

      reason = start(settings.mode == "now", settings.minimum_bytes, settings.interval_seconds)
      problems << "no memory will be given back after collections: #{reason}" if reason
      problems
    end
  end

  Trim.begin(Trim::Settings.new(ENV["CULET_TRIM"])).each { |sentence| warn("culet: #{sentence}") }
end
