# frozen_string_literal: true

module Culet
  # A failure the user can act on. The command line prints the message without a backtrace and exits 1.
  class Error < StandardError
    # @return [Integer] exit status of the command line
    attr_reader :exit_status

    # @param error [SystemCallError, IOError]
    # @return [String] the message without the function and the file that Ruby adds
    def self.reason(error) = error.message.scrub("?").sub(/ [@-] .*/, "").downcase

    # @param message [String] one sentence
    # @param exit_status [Integer] exit status of the command line
    def initialize(message = nil, exit_status: 1)
      super(message)
      @exit_status = exit_status
    end
  end

  # A gem that only the command line uses is not installed. The gem culet-cli depends on all of them.
  class MissingGem < Error
    # @param use [String] what needs the gem: the subject of the sentence
    # @param gem [String] name of the gem
    # @param instead [String, nil] options that need no gem
    def initialize(use, gem, instead: nil)
      remedy = defined?(::Bundler) ? "add `gem \"culet-cli\"` to the Gemfile" : "run `gem install culet-cli`"
      super("#{use} needs the gem #{gem}, which comes with culet-cli; #{remedy}#{", or use #{instead}" if instead}")
    end
  end

  # A mistake in the command line, which exits 2.
  class UsageError < Error
    # @param message [String] one sentence
    def initialize(message = nil) = super(message, exit_status: 2)
  end
end
