# frozen_string_literal: true

require_relative "../culet"

module Culet
  # From now on `culet signal PID` can ask this process, and those it forks, for a snapshot that tells what its Ruby
  # objects hold. Costs a process one native thread, asleep until it is asked, and a handler for a real-time signal that
  # nobody else uses; the signals that servers use stay theirs. Root is answered, and the process's own user if that one may
  # read its memory too.
  #
  # From the extension come:
  # - Culet::Agent.start: what this file does; true when this process listens
  # - Culet::Agent.listening?: whether this process can be asked
  # - Culet::Agent.problem: why it cannot, in words; nil where it can
  module Agent
    # Where culet has no native part, a Mac for one, nothing listens, and the program is to run all the same.
    unless Culet.native?
      # @return [Boolean] always false
      def self.listening? = false

      # @return [String] what the build lacked
      def self.problem = Native.missing_reason("culet.so")
    end
  end

  if native? && !Agent.start
    warn("culet: the agent cannot listen (#{Agent.problem}); `culet signal #{Process.pid}` will not be answered")
  end
end
