# frozen_string_literal: true

require "tmpdir"

module StandardBench
  # Has each program in Ruby install its gems and fill its databases, once and before it is measured.
  class Preparation
    TIMEOUT_SECONDS = 1_800

    def initialize = @done = {}

    # @return [String, nil] why it cannot run
    def obstacle(program) = @done.fetch(program.name) { @done[program.name] = prepare(program) }

    private

    def prepare(program)
      Dir.mktmpdir("culet-standard") do |folder|
        ended = Bench::Execution.call({ **program.environment, "LD_PRELOAD" => nil, "STANDARD_PREPARE" => "1" },
                                      Program.words(program.command), timeout: TIMEOUT_SECONDS, directory: folder)
        "it cannot be prepared: #{ended.failure}" unless ended.success?
      end
    end
  end
end
