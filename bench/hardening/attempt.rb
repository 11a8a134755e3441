# frozen_string_literal: true

module HardeningBench
  # One attempt of an attack: a process under one contender.
  class Attempt < AllocatorBench::Trial
    # kind: :stopped (the process was ended before the effect), :no_effect or :succeeded; message: the diagnostic or
    # signal that ended it
    Ending = Struct.new(:kind, :message)

    # An attack takes milliseconds. One that blocks the program for this long has succeeded as a denial of service.
    TIMEOUT_SECONDS = 10

    # @param attack [Attack]
    # @param contender [AllocatorBench::Contender]
    def initialize(attack, contender)
      super(command: attack.command, contender: contender, timeout: TIMEOUT_SECONDS)
      @attack = attack
    end

    private

    # @return [Ending]
    # @raise [Culet::Error] where the attack could not be made
    def outcome(status, out, err)
      malloc, result = out.lines(chomp: true)
      check(malloc, err)
      return Ending.new(:succeeded) if result == "succeeded"
      return Ending.new(:succeeded, "it did not end within #{TIMEOUT_SECONDS} s") unless status
      return Ending.new(:no_effect) if status.success? && result == "no effect"
      return Ending.new(:stopped, message(status, err)) if status.signaled?

      raise Culet::Error, "#{@attack.name} cannot be made with #{@contender.name}: #{diagnostic(err) || ended(status)}"
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
