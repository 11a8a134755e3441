# frozen_string_literal: true

require "culet/tools/compare"

# A measured program that stops itself by SIGSTOP goes on once a sample has been taken of it as it stands there: its
# result does not depend on when the sampler runs. A process that compares requires this file.
module Sampled
  # In a program written in Ruby.
  STOP = "Process.kill(:STOP, Process.pid)"
  # The environment of built-in workloads.
  AT_THE_END = { "RUBYOPT" => "-r#{__dir__}/stops_at_its_end" }.freeze
  # A program of which something is not found out does not stand there for ever.
  MOST_SAMPLES = 60
  # What a later look may find otherwise.
  UNSURE = /before its allocator could be checked|did not load|was not loaded/

  # @param culet [Array<String>] the words that start the command line
  # @return [Array<String>] the same for programs that stop themselves
  def self.command(culet) = [*culet[0..-2], "-r#{__FILE__}", culet.last]

  private

  def sample
    stopped = [@descendants.root, *@seen.keys].uniq.select { |pid| Culet::Processes::Cpu.state(pid) == "T" }
    @measured = []
    super
    (stopped & @measured).each { |pid| Process.kill(:CONT, pid) if known?(pid) }
  rescue Errno::ESRCH
    nil # it was killed
  end

  def raise_peak(pid)
    super
    @measured << pid
  end

  # Mappings are not read at each sample, and first perhaps before the process executes its program.
  def known?(pid)
    @looks ||= Hash.new(0)
    looks = @looks[pid] += 1
    @series.size > 1 && (looks > MOST_SAMPLES || !@preload_check.failure(pid)&.match?(UNSURE))
  end
end

Culet::Compare::Sampler.prepend(Sampled)
