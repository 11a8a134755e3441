# frozen_string_literal: true

require "culet/model/statistics"
require "culet/system/clock"
require "culet/system/processes"
require "culet/system/ruby_options"
require_relative "command"
require_relative "prediction_programs"
require_relative "prediction_trial"

# What a watch by culet explain costs the program that is watched.
class CostTrial < PredictionTrial
  HEAD = ["turn", "requests", "CPU ms of a request", "CPU s of culet explain", "p50 ms", "p99 ms", "longest ms"].freeze

  # @return [Array<String>] a table of the turns, and the ratio of the medians
  def call
    agent = { "RUBYOPT" => "-r#{Culet::RubyOptions.file("agent")}" }
    turns = run(@options[:agent] ? agent : {}, []) do |child, load, _|
      raise Culet::Error, "#{@program.name} serves no requests" unless load.respond_to?(:take_seconds)

      load.pause = @options[:pause]
      Array.new(2 * @options[:runs]) { |turn| turn(child.pid, load, watched: turn.odd?) }
    end
    [Bench::Table.markdown(HEAD, turns), ratio(turns)]
  end

  private

  def turn(pid, load, watched:)
    load.take_seconds
    before = cpu_seconds(pid)
    watcher = children_seconds
    watched ? explain(pid) : sleep(@options[:for])
    watcher = children_seconds - watcher
    cpu = cpu_seconds(pid).sum { |one, seconds| seconds - before.fetch(one, 0) }
    row(watched, cpu, watcher, load.take_seconds.sort)
  end

  def row(watched, cpu, watcher, seconds)
    count = seconds.size
    times = seconds.values_at(count / 2, count * 99 / 100, -1).map { |one| (1e3 * one).round(1) }
    [watched ? "watched" : "alone", count, (1e3 * cpu / count).round(3), watcher.round(2), *times]
  end

  def children_seconds = Process.times.then { |times| times.cutime + times.cstime }

  # Of the processes of the program, by number. Forked copies have ended by then.
  def cpu_seconds(root)
    Culet::Processes::Tree.new(root).pids.to_h do |pid|
      [pid, Culet::Processes::Stat.new(pid).then { |stat| stat.read.cpu_seconds.tap { stat.close } }]
    end
  end

  def ratio(turns)
    watched, alone = turns.partition { |turn| turn.first == "watched" }
                          .map { |group| Culet::Statistics.median(group.map { |turn| turn[2] }) }
    format("CPU of a request, watched to alone: %.3f (medians)", watched / alone)
  end
end
