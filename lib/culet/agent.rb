# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/agent")

module Culet
  # `require "culet/agent"` lets `culet snapshot --objects PID` request object counts of this process and of those that
  # it forks. It costs one sleeping native thread and the handler of one unused real-time signal; culet does not use
  # USR1, USR2, TTIN, TTOU or HUP. The agent answers root, and the user of the process if that user may read its
  # memory.
  #
  # The extension defines:
  # - Culet::Agent.start: starts to listen; returns whether this process listens
  # - Culet::Agent.listening?: whether this process listens
  # - Culet::Agent.problem: the reason why not, or nil
  module Agent
    # Without the native extension (on macOS, for example) nothing listens, and the program runs as usual.
    unless Culet.native?
      # @return [Boolean] always false
      def self.listening? = false

      # @return [String] the reason
      def self.problem = Native.missing_reason("culet.so")
    end
  end

  if native? && !Agent.start
    warn("culet: the agent cannot listen (#{Agent.problem}); `culet snapshot --objects #{Process.pid}` will fail")
  end
end

require_relative "blackbox" if ENV["CULET_BLACKBOX"]
