# frozen_string_literal: true

require_relative "../journal"
require_relative "command"

# What `culet explain` says of one program on one allocator.
class ExplainTrial
  # One document of --json, at most.
  MOST_BYTES = 4096

  # @param idle [Boolean] whether the program serves no requests besides
  # @param seconds [Integer] of watching
  # @param culet [String] the command line
  def initialize(program, allocator, idle:, seconds:, culet:)
    @program = program
    @allocator = allocator
    @idle = idle
    @seconds = seconds
    @culet = culet
  end

  # @return [Array] by which a record of an earlier run is found
  def key = [@program.name, @allocator, load, @seconds]

  # @return [Hash{String => Object}] the record
  def call
    environment = @idle ? { "PROGRAM_IDLE" => "1" } : {}
    document, problem = @program.run(allocator: @allocator, env: environment) { |pid| explain(pid) }
    record(document, problem)
  rescue RuntimeError => e
    record(nil, e.message)
  end

  private

  def load = @idle ? "idle" : "busy"

  def explain(pid)
    document, bytes = ExplainCommand.call(pid, seconds: @seconds, culet: @culet)
    [document, ("its document has #{bytes} bytes" if bytes > MOST_BYTES)]
  end

  def record(document, problem)
    verdict = document && document["verdict"]
    { "program" => @program.name, "allocator" => @allocator, "load" => load, "seconds" => @seconds,
      "verdict" => verdict, "expected" => @program.verdicts(@allocator), "outcome" => outcome(verdict),
      "problem" => problem,
      "named" => named?(document), **(document || {}).slice("sentence", "evidence", "remedies") }
  end

  def outcome(verdict)
    return "failed" if verdict.nil?
    return "right" if @program.verdicts(@allocator).include?(verdict)

    verdict == "unknown" ? "unknown" : "wrong"
  end

  # Whether a line of the program's file is named, in the sentence or a remedy; nil where no line is to blame.
  def named?(document)
    @program.line && document && JSON.generate(document).include?("#{File.basename(@program.file)}:")
  end
end

# The records of all trials, in a file: trials that have their record are not made again.
class ExplainRecords
  def initialize(path)
    @journal = Bench::Journal.new(path)
    @lock = Mutex.new
    @records = @journal.lines.to_h { |record| [record.values_at("program", "allocator", "load", "seconds"), record] }
  end

  # @return [Hash, nil]
  def [](trial) = @lock.synchronize { @records[trial.key] }

  def add(trial, record)
    @lock.synchronize do
      @records[trial.key] = record
      @journal.add(record)
    end
  end
end
