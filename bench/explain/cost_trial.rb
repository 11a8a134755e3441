# frozen_string_literal: true

require "culet/model/statistics"
require "culet/system/clock"
require "culet/system/processes"
require "culet/system/ruby_options"
require_relative "command"
require_relative "prediction_programs"
require_relative "prediction_trial"

# What a watch by culet explain costs the program that is watched: CPU time, and page faults, whose number varies less
# from turn to turn. The faults are due to the forked copies of looks: the kernel copies each page that the program
# writes to while such a copy lives.
class CostTrial < PredictionTrial
  HEAD = ["turn", "requests", "CPU ms of a request", "page faults of a request", "CPU s of culet explain", "p50 ms",
          "p99 ms", "longest ms"].freeze

  # @return [Array<String>] a table of the turns, and a comparison of the medians
  def call
    agent = { "RUBYOPT" => "-r#{Culet::RubyOptions.file("agent")}" }
    turns = run(@options[:agent] ? agent : {}, []) do |child, load, _|
      raise Culet::Error, "#{@program.name} serves no requests" unless load.respond_to?(:take_seconds)

      load.pause = @options[:pause]
      Array.new(2 * @options[:runs]) { |turn| turn(child.pid, load, watched: turn.odd?) }
    end
    [Bench::Table.markdown(HEAD, turns), comparison(turns)]
  end

  private

  def turn(pid, load, watched:)
    load.take_seconds
    before = spent(pid)
    watcher = children_seconds
    watched ? explain(pid) : sleep(@options[:for])
    watcher = children_seconds - watcher
    spent = spent(pid).map { |one, now| now.zip(before.fetch(one, [0, 0])).map { |after, earlier| after - earlier } }
    cpu, faults = spent.transpose.map(&:sum)
    row(watched, cpu, faults, watcher, load.take_seconds.sort)
  end

  def row(watched, cpu, faults, watcher, seconds)
    count = seconds.size
    times = seconds.values_at(count / 2, count * 99 / 100, -1).map { |one| (1e3 * one).round(1) }
    [watched ? "watched" : "alone", count, (1e3 * cpu / count).round(3), faults.fdiv(count).round(1), watcher.round(2),
     *times]
  end

  def children_seconds = Process.times.then { |times| times.cutime + times.cstime }

  # CPU seconds and page faults of the program's processes, by number. Forked copies have ended by then.
  def spent(root)
    Culet::Processes::Tree.new(root).pids.to_h do |pid|
      stat = Culet::Processes::Stat.new(pid)
      [pid, stat.read.then { |reading| [reading.cpu_seconds, reading.faults] }.tap { stat.close }]
    end
  end

  def comparison(turns)
    watched, alone = turns.partition { |turn| turn.first == "watched" }.map do |group|
      [2, 3].map { |at| Culet::Statistics.median(group.map { |turn| turn[at] }) }
    end
    format("watched to alone (medians): %.3f of the CPU of a request, %+.1f page faults a request",
           watched.first / alone.first, watched.last - alone.last)
  end
end
