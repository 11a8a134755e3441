# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Runs a command in the foreground: with culet's input and output, and the signals that culet receives.
  #
  # @api private
  class Foreground
    # Signals of the keyboard reach the command directly.
    KEYBOARD = %w[INT QUIT].freeze
    FORWARDED = %w[TERM HUP USR1 USR2].freeze
    private_constant :KEYBOARD, :FORWARDED

    # @param environment [Hash{String => String, nil}] changes to the environment of the command
    # @param program [String] path of its first word
    # @param command [Array<String>]
    def initialize(environment, program, command)
      @environment = environment
      @program = program
      @command = command
    end

    # @return [Integer] the exit status, as in a shell
    def self.exit_status(status) = status.signaled? ? 128 + status.termsig : status.exitstatus

    # @return [String] how a program ended, the end of a sentence
    def self.ending(status)
      return "ended with status #{status.exitstatus}" unless status.signaled?

      "was ended by SIG#{Signal.signame(status.termsig) || status.termsig}"
    end

    # @param message [String] what went wrong
    # @param status [Process::Status] how it ended
    # @return [Error] with the exit status of the command, at least 1
    def self.error(message, status) = Error.new(message, exit_status: [exit_status(status), 1].max)

    # @return [Integer] the command's process number, once it has been started
    attr_reader :pid

    # @param options [Hash] redirections, as for Process.spawn
    # @yield again and again while it runs, if there is a block
    # @return [Process::Status] how it ended
    # @raise [SystemCallError] when it cannot be started
    def call(**options)
      forwarding do |forward|
        @pid = Process.spawn(@environment, [@program, @command.first], *@command.drop(1),
                             close_others: false, **options)
        forward.call(@pid)
        yield until (ended = Process.wait2(@pid, block_given? ? Process::WNOHANG : 0))
        ended.last
      end
    end

    private

    # The command handles the signals. Yields a Proc that takes the pid of the command; earlier signals are forwarded
    # then.
    def forwarding
      pid = nil
      early = []
      before = (KEYBOARD + FORWARDED).to_h do |name|
        [name, trap(name) { pid ? (send_on(name, pid) if FORWARDED.include?(name)) : early << name }]
      end
      yield ->(started) { (pid = started) && early.each { |name| send_on(name, pid) } }
    ensure
      before&.each { |name, handler| trap(name, handler || "DEFAULT") }
    end

    def send_on(name, pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil # it has just ended
    end
  end
end
