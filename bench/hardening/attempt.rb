# frozen_string_literal: true

module HardeningBench
  # One attempt of an attack: a process under one contender.
  class Attempt
    # kind: :stopped (the process was ended before the effect), :no_effect or :succeeded; message: the diagnostic or
    # signal that ended it
    Ending = Struct.new(:kind, :message)

    # An attack takes milliseconds. One that blocks the program for this long has succeeded as a denial of service.
    TIMEOUT_SECONDS = 10

    def initialize(attack, contender)
      @contender = contender
      @attack = attack
    end

    # @return [Ending]
    # @raise [Culet::Error] where the attack could not be made
    def run = outcome(Bench::Execution.call(@contender.environment, @attack.command, timeout: TIMEOUT_SECONDS))

    private

    def outcome(ended)
      status = ended.status
      err = ended.err
      malloc, result = ended.out.lines(chomp: true)
      check(malloc, err)
      return Ending.new(:succeeded) if result == "succeeded"
      return Ending.new(:succeeded, "it did not end within #{TIMEOUT_SECONDS} s") unless status
      return Ending.new(:no_effect) if status.success? && result == "no effect"
      return Ending.new(:stopped, message(status, err)) if status.signaled?

      raise Culet::Error, "#{@attack.name} cannot be made with #{@contender.name}: " \
                          "#{diagnostic(err) || ended.failure}"
    end

    def check(malloc, err)
      file = malloc&.delete_prefix("malloc ")
      return if file && @contender.serves?(file)

      raise Culet::Error, "#{@attack.name}, #{@contender.name}: the preload did not take: malloc is that of " \
                          "#{file || "no library"}#{" (#{diagnostic(err)})" if diagnostic(err)}"
    end

    def message(status, err) = diagnostic(err) || "signal #{Signal.signame(status.termsig)}"

    def diagnostic(err) = err.scrub("?").lines.map(&:strip).find { |line| !line.empty? }
  end
end
