# frozen_string_literal: true

require_relative "top_helper"

# `culet top` on a terminal leaves it as it found it, however it ends.
class TopTerminalTest < Minitest::Test
  include TopHelper

  NORMAL = %w[0 1 1].freeze
  VIEW = %w[1 0 0].freeze
  # Fails once the view is on the terminal.
  FAILING = <<~RUBY
    require "culet/tools/top"
    require "culet/tools/top/view"
    sampler = Culet::Live::Sampler.new([Integer(ARGV[0])])
    readings = 0
    failing = -> { (readings += 1) < 3 ? sampler.call : raise("the reading failed") }
    Culet::Top::View.new(failing, console: IO.console, every: 0.2, color: true).call
  RUBY

  def test_it_is_restored_by_keys_and_signals
    with_tree do |pid|
      with_terminal do |terminal, folder|
        { "q" => 0, "C-c" => 130, "TERM" => 143, "HUP" => 129, "INT" => 130, "C-\\" => 131 }.each_with_index do |(ending, status), round|
          restored(terminal, folder, round, "#{Shellwords.join([*culet_command, "top", pid.to_s])}; echo status $?") do
            terminal.wait_for(/TITLE/)
            assert_equal VIEW, terminal.modes
            ending.match?(/\A[A-Z]+\z/) ? Process.kill(ending, culet_processes(pid).first) : terminal.press(ending)
            terminal.wait_for(/^status #{status}$/)
          end
        end
      end
    end
  end

  def test_it_is_restored_after_an_exception
    with_tree do |pid|
      with_terminal do |terminal, folder|
        File.write("#{folder}/failing.rb", FAILING)
        restored(terminal, folder, 0, Shellwords.join([RbConfig.ruby, "-I#{ROOT}/lib", "-r#{ROOT}/bin/gems.rb", "#{folder}/failing.rb", pid.to_s])) do
          terminal.wait_for(/the reading failed/)
        end
      end
    end
  end

  def test_it_is_restored_when_the_processes_have_ended
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      with_terminal do |terminal, folder|
        restored(terminal, folder, 0, "#{Shellwords.join([*culet_command, "top", pid.to_s])}; echo status $?") do
          terminal.wait_for(/TITLE/)
          Process.kill(:KILL, pid)
          terminal.wait_for(/^status 0$/)
        end
        assert_match(/^culet: process #{pid} has ended$/, terminal.screen)
      end
    end
  end

  def test_ctrl_z_gives_the_terminal_back_and_fg_draws_again
    with_tree do |pid|
      with_terminal do |terminal, folder|
        restored(terminal, folder, 0, Shellwords.join([*culet_command, "top", pid.to_s])) do
          2.times do |round|
            terminal.wait_for(/worker two/)
            terminal.press("C-z")
            terminal.wait_for(/Stopped/)
            assert_equal NORMAL, terminal.modes
            terminal.enter("clear; stty -g > #{folder}/stopped; echo typed #{round}")
            terminal.wait_for(/^typed #{round}$/)
            assert_equal File.read("#{folder}/before"), File.read("#{folder}/stopped")
            terminal.enter("fg")
            terminal.wait_for(/TITLE/)
            assert_equal VIEW, terminal.modes
          end
          terminal.press("q")
        end
      end
    end
  end

  # A stop that cannot be caught: the shell has the terminal meanwhile.
  def test_it_draws_again_after_a_stop_from_outside
    with_tree do |pid|
      with_terminal do |terminal, folder|
        restored(terminal, folder, 0, Shellwords.join([*culet_command, "top", pid.to_s])) do
          terminal.wait_for(/TITLE/)
          top = culet_processes(pid).first
          Process.kill(:STOP, top)
          terminal.wait_for(/Stopped/)
          terminal.enter("stty echo icanon; clear")
          terminal.enter("fg")
          terminal.wait_for(/worker two/)
          assert_equal VIEW, terminal.modes
          terminal.press("q")
        end
      end
    end
  end

  def test_a_terminal_that_goes_away_ends_it
    with_tree do |pid|
      tops = nil
      with_terminal do |terminal, _folder|
        start(terminal, pid)
        tops = culet_processes(pid)
        assert_equal 1, tops.size
      end
      assert_settles("it ends") { tops.none? { |top| alive?(top) } }
    end
  end

  private

  # The block ends what the command started.
  def restored(terminal, folder, round, command)
    terminal.enter("clear; stty -g > #{folder}/before; echo before #{round}")
    terminal.wait_for(/^before #{round}$/)
    before = [File.read("#{folder}/before"), terminal.modes]
    assert_equal NORMAL, before.last
    terminal.enter(command)
    yield
    terminal.wait_for(/^ready>/)
    terminal.enter("stty -g > #{folder}/after; echo after #{round}")
    terminal.wait_for(/^after #{round}$/)
    assert_equal before, [File.read("#{folder}/after"), terminal.modes]
  end

  def culet_processes(pid)
    Dir.glob("/proc/[0-9]*/cmdline").filter_map do |path|
      words = File.binread(path).split("\0")
      path[/\d+/].to_i if words.include?("top") && words.last == pid.to_s && words.any? { |word| word.end_with?("exe/culet") }
    rescue Errno::ENOENT, Errno::ESRCH
      nil # it has ended
    end
  end

  def alive?(pid)
    !File.read("/proc/#{pid}/stat").match?(/\) Z /)
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end
end
