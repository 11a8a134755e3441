# frozen_string_literal: true

module Culet
  # A failure the user can act on. The message is one plain sentence that says
  # what to do; the command line prints it without a backtrace and exits 1.
  class Error < StandardError; end

  # The command was used wrongly; the command line exits 2.
  class UsageError < Error; end
end
