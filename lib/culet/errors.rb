# frozen_string_literal: true

module Culet
  # A failure the user can act on. The message is one plain sentence that says
  # what to do; the command line prints it without a backtrace and exits 1.
  class Error < StandardError
    # @return [Integer] what the command line exits with
    attr_reader :exit_status

    # @param message [String]
    # @param exit_status [Integer]
    def initialize(message = nil, exit_status: 1)
      super(message)
      @exit_status = exit_status
    end
  end

  # The command was used wrongly; the command line exits 2.
  class UsageError < Error
    def initialize(message = nil) = super(message, exit_status: 2)
  end
end
