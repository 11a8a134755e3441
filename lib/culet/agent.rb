# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/agent")

module Culet
  # `require "culet/agent"` lets `culet explain`, `retain`, `strings` and `snapshot --objects` ask this process, and the
  # processes that it forks, about their objects. The agent is one sleeping native thread and the handler of one unused
  # real-time signal; culet does not use USR1, USR2, TTIN, TTOU or HUP. It answers root, and the user of the process if
  # that user may read the memory of the process.
  #
  # The extension defines:
  # - Culet::Agent.start: starts the agent; returns whether this process listens
  # - Culet::Agent.listening?: whether this process listens
  # - Culet::Agent.problem: the reason why not, or nil
  module Agent
    # Without the native extension (on macOS, for example) the agent never listens.
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
