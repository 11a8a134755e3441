# frozen_string_literal: true

require_relative "../errors"
require_relative "processes/memory"
require_relative "processes/cpu"
require_relative "processes/stat"
require_relative "processes/rollups"
require_relative "processes/tree"
require_relative "processes/marks"
require_relative "processes/live"
require_relative "processes/identity"
require_relative "processes/search"

module Culet
  # Reading live processes from /proc. Nothing here stops, signals or changes
  # the process that is read.
  #
  # @api private
  module Processes
    # Errors of reading /proc/PID/... if the process has ended, or belongs to another user.
    GONE_OR_FORBIDDEN = [Errno::ENOENT, Errno::ESRCH, Errno::EACCES, Errno::EPERM].freeze
  end
end
