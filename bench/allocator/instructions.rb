# frozen_string_literal: true

require "culet/system/subprocess"

module AllocatorBench
  # Instructions per operation, counted by callgrind: the difference of two runs, one of which does twice as much,
  # without start, filling and end. Exact on a busy machine; without cache misses and the kernel.
  class Instructions
    # The most that a counted run does, by parameter.
    AMOUNTS = { "rounds" => 4, "operations" => 50_000 }.freeze
    # callgrind is some 50 times slower than the processor.
    TIMEOUT_SECONDS = 300

    # @param built [String] folder of the C probes
    # @param amounts [Hash{String => Integer}] as AMOUNTS
    def initialize(built:, amounts: AMOUNTS)
      @built = built
      @amounts = amounts
    end

    # @return [Boolean] whether it is written in C and has one of AMOUNTS
    def able?(probe) = !probe.ruby? && probe.group == :cpu

    # @return [Float] instructions per operation, those of the probe's own loop included
    # @raise [Culet::Error] when there is no valgrind, or the probe fails under it
    def per_operation(probe, contender)
      name = amount_name(probe)
      amount = [@amounts.fetch(name), *stated(probe, name)].min
      once, twice = [amount, 2 * amount].map { |number| count(probe, contender, "#{name}=#{number}") }
      (twice - once) / (amount * each(probe, name)).to_f
    end

    private

    def amount_name(probe) = probe.program == "sequence" ? "rounds" : "operations"

    # @return [Integer] operations that one of the amount stands for
    def each(probe, name)
      return 1 if name == "operations"

      stated(probe, "blocks") || 10_000
    end

    # @return [Integer, nil] value of a parameter in the probe's arguments
    def stated(probe, name)
      match = probe.arguments.filter_map { |argument| argument.match(/\A#{name}=(\d+)([kMG]?)\z/) }.last
      match && (match[1].to_i << 10 * "kMG".index(match[2]).to_i.succ * match[2].size)
    end

    def count(probe, contender, argument)
      command = probe.command(built: @built).reject { |old| old.start_with?(argument[/\A\w+=/]) } << argument
      text, status = run(contender.environment,
                         ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command])
      collected = text[/^==\d+== Collected : (\d+)/, 1]
      unless status.success? && collected
        raise Culet::Error,
              "#{probe.name} fails under callgrind with #{contender.name}: #{text.lines.last.to_s.strip}"
      end

      collected.to_i
    end

    def run(environment, command)
      text, status = Culet::Subprocess.run({ "RUBYOPT" => nil }.merge(environment), *command, seconds: TIMEOUT_SECONDS)
      raise Culet::Error, "callgrind did not end within #{TIMEOUT_SECONDS} s" unless status

      [text, status]
    rescue Errno::ENOENT
      raise Culet::Error, "counting instructions needs valgrind: `apt-get install valgrind`"
    end
  end
end
