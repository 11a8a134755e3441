# frozen_string_literal: true

require "test_helper"
require "json"
require "shellwords"
require_relative "tmux"

# Process trees to look at, and terminals to look at them on.
module TopHelper
  # A master and two workers; USR1 starts a third one. The output tells that all have their titles.
  TREE = <<~RUBY
    if ARGV.include?("agent")
      $VERBOSE = nil
      require "culet/agent"
    end
    GC.start
    ready, writer = IO.pipe
    worker = lambda do |name|
      fork do
        $own = "x" * 20_000_000
        $0 = name
        writer.puts
        sleep
      end
    end
    $0 = ARGV.fetch(0)
    %w[one two].each { |name| worker.call("tree: worker " + name) }
    2.times { ready.gets }
    wanted = false
    trap(:USR1) { wanted = true }
    puts :up
    $stdout.flush
    loop do
      sleep 0.05
      worker.call("tree: worker three") if wanted
      wanted = false
      begin
        Process.wait(-1, Process::WNOHANG)
      rescue Errno::ECHILD
        nil
      end
    end
  RUBY

  private

  # @yieldparam pid [Integer] of the master
  def with_tree(agent: true, title: "tree: master", &block)
    with_program(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-e", TREE, title, *("agent" if agent), &block)
  end

  # @yieldparam terminal [Tmux]
  # @yieldparam folder [String]
  def with_terminal(columns: 100, rows: 24, environment: {})
    Dir.mktmpdir("culet-top") do |folder|
      terminal = Tmux.new(folder, columns: columns, rows: rows, environment: TestHelper::NEUTRAL.merge(environment))
      yield terminal, folder
    ensure
      terminal&.close
    end
  end

  # Starts `culet top` and waits for its table.
  def start(terminal, *words, expect: /^ *PID .*TITLE/)
    terminal.enter(Shellwords.join([*culet_command, "top", *words.map(&:to_s)]))
    terminal.wait_for(expect)
  end

  # @return [Array<String>] the rows of the table
  def rows(text) = text.lines(chomp: true).grep(/tree: /).grep(/\A *\d+ +[\d.-]/)

  # @return [Integer] the child of a process whose title ends so
  def child(pid, name)
    Integer(File.read("/proc/#{pid}/task/#{pid}/children").split.find { |child| File.read("/proc/#{child}/cmdline").include?(name) })
  end
end
