# frozen_string_literal: true

require_relative "../errors"

module Culet
  # A command of the user's, run to its end in the foreground: it has our input and output, and the signals that we get.
  class Foreground
    # Signals that end a program. Those of the keyboard reach the command by themselves.
    KEYBOARD = %w[INT QUIT].freeze
    FORWARDED = %w[TERM HUP USR1 USR2].freeze
    private_constant :KEYBOARD, :FORWARDED

    # @param environment [Hash{String => String, nil}] what is different in the command's environment
    # @param program [String] path of its first word
    # @param command [Array<String>]
    def initialize(environment, program, command)
      @environment = environment
      @program = program
      @command = command
    end

    # @param status [Process::Status]
    # @return [Integer] the exit status that a shell would have for it
    def self.exit_status(status) = status.signaled? ? 128 + status.termsig : status.exitstatus

    # @param message [String] a sentence on what the command left undone
    # @param status [Process::Status] how it ended
    # @return [Error] whose exit status is the command's own, unless that says that all went well
    def self.error(message, status) = Error.new(message, exit_status: [exit_status(status), 1].max)

    # @return [Integer] the command's process number, once it has been started
    attr_reader :pid

    # @param options [Hash] redirections, as for Process.spawn
    # @return [Process::Status] how it ended
    # @raise [SystemCallError] when it cannot be started
    def call(**options)
      forwarding do |forward|
        @pid = Process.spawn(@environment, [@program, @command.first], *@command.drop(1), close_others: false, **options)
        forward.call(@pid)
        Process.wait2(@pid).last
      end
    end

    private

    # The command decides what a signal means. Yields what is to be told the command's pid; what came before goes to
    # it then.
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
