# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/auto")

require_relative "runtime/trim/settings"

module Culet
  # `require "culet/auto"` returns free memory to the kernel after each major garbage collection of this process and of
  # the processes that it forks. CULET_TRIM has options (see Trim::Settings). If trims are impossible, one warning goes
  # to stderr.
  #
  # The extension defines Culet::Trim.start(at_once, minimum_bytes, interval_seconds), which returns nil or the reason
  # of a failure.
  module Trim
    # @api private
    # @return [Array<String>] warnings, a sentence each
    def self.begin(settings)
      problems = settings.problems.dup
      return problems if settings.mode == "off"
      return problems << "free memory is not returned: #{Native.missing_reason("culet.so")}" unless Culet.native?

      reason = start(settings.mode == "now", settings.minimum_bytes, settings.interval_seconds)
      problems << "free memory is not returned after garbage collections: #{reason}" if reason
      problems
    end
  end

  Trim.begin(Trim::Settings.new(ENV.fetch("CULET_TRIM", nil))).each { |sentence| Native.warn(sentence) }
end

require_relative "blackbox" if ENV["CULET_BLACKBOX"]
