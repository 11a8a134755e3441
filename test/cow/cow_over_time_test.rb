# frozen_string_literal: true

require_relative "cow_helper"
require_relative "readings"

# Sharing over time: of a running family, and of a command from its start to its end.
class CowOverTimeTest < Minitest::Test
  include CowHelper

  # Two workers that make more and more of what they inherited their own.
  AT_WORK = "#{CowHelper::WORDS}2.times { fork { WORDS.each_slice(100) { |words| words.each { |word| word << \"!\" }; sleep 0.05 } } }; #{WAITING}".freeze

  # Two that have done so, and end once they have been read.
  DONE = <<~RUBY.freeze
    #{CowHelper::WORDS}
    reader, writer = IO.pipe
    children = Array.new(2) { fork { WORDS.each { |word| word << "!" }; writer.write("x"); sleep } }
    reader.read(2)
    #{Readings::AWAIT}
    children.each { |child| Process.kill(:KILL, child) && Process.wait(child) }
  RUBY

  def test_samples_of_a_running_family
    with_family(*RUBY, "-e", AT_WORK, settled: false) do |pid|
      document = json("cow", pid.to_s, "--every", "0.2s", "--for", "1.5s")
      samples = document["samples"]
      assert_equal 8, samples.size
      assert_equal samples.map { |one| one["at_seconds"] }.sort, samples.map { |one| one["at_seconds"] }
      own = samples.map { |one| one["processes"].drop(1).sum { |worker| worker["private_bytes"] } }
      assert_operator own.last, :>, own.first
      samples.each { |one| assert_equal one["processes"].sum { |process| process["pss_bytes"] }, one["total_pss_bytes"] }
      assert_equal 3, document["processes"].size
      assert_operator document["processes"].drop(1).sum { |worker| worker["private_bytes"] }, :>=, 0.9 * own.last
    end
  end

  def test_the_curve
    with_family(*RUBY, "-e", WORKERS) do |pid|
      out, err, status = run_culet("cow", pid.to_s, "--every", "0.1", "--for", "0.3", env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
      assert_match(/^after s +processes +all \(PSS\) MB/, out)
      assert_match(/^ +0\.0 +4 +\d+\.\d +\d+\.\d +\d+\.\d$/, out)
      assert_match(/^one more worker would cost/, out)
    end
  end

  def test_one_that_ends_meanwhile
    with_family(*RUBY, "-e", "puts :up; $stdout.flush; sleep 1.5", settled: false) do |pid|
      # A zombie as soon as it has ended, since nobody waits for it.
      out, err, status = run_culet("cow", pid.to_s, "--every", "0.2", "--for", "20", env: NEUTRAL)
      assert_equal [1, ""], [status.exitstatus, out]
      assert_match(/\Aculet: process #{pid} (has )?ended/, err)
    end
  end

  def test_a_command
    out, err, status = run_read("--every", "0.2", "--json", "--out", "/dev/stderr", "--", *RUBY, "-e", "#{DONE}; puts :done")
    assert_equal [0, "done\n"], [status.exitstatus, out]
    document = JSON.parse(err.lines.first)
    assert_equal [false, true, true], document["processes"].map { |one| one["forked"] }
    assert_operator document["processes"].last["unshared_bytes"], :>, 1_000_000
    assert_operator document["samples"].size, :>=, 2
  end

  def test_a_command_that_fails
    out, err, status = run_read("--", *RUBY, "-e", "child = fork { sleep }; #{Readings::AWAIT}; Process.kill(:KILL, child); exit 5")
    assert_equal 5, status.exitstatus
    assert_match(/ ended with status 5\n\z/, err)
    assert_match(/forked by/, out)
  end

  def test_commands_that_cannot_be_read
    { [*RUBY, "-e", "exit"] => [1, /\Aculet: .*ruby.* ended before it could be read\n\z/],
      %w[/no/such/program] => [127, %r{\Aculet: cannot run /no/such/program: no such program\n\z}] }.each do |command, (expected, sentence)|
      out, err, status = run_program(*Readings.command(culet_command), "cow", "--", *command, env: NEUTRAL.merge("READINGS" => nil))
      assert_equal [expected, ""], [status.exitstatus, out]
      assert_match sentence, err
    end
  end

  def test_a_limit_on_a_command
    _, err, status = run_read("--max-private", "1MB", "--", *RUBY, "-e", DONE)
    assert_equal 3, status.exitstatus, err
    assert_match(/^culet: process \d+ has [\d.]+ MB of private memory, more than 1\.00 MB$/, err)
  end

  # By the terminal, or by a signal to culet alone: the command ends, and what was seen is reported.
  { INT: -1, TERM: 1 }.each do |signal, group|
    define_method("test_a_command_that_#{signal}_interrupts") do
      directory = new_folder
      words = ["cow", "--json", "--out", "#{directory}/cow.json", "--", *RUBY, "-e", WORKERS]
      with_started(*Readings.command(culet_command), *words, env: NEUTRAL.merge("READINGS" => directory), err: "#{directory}/err") do |pid, out|
        assert_equal "up\n", out.gets
        File.write("#{directory}/ready", "")
        assert_settles("it is read") { File.exist?("#{directory}/read") }
        Process.kill(signal, group * pid)
        assert_equal 128 + Signal.list.fetch(signal.to_s), await_end(pid).exitstatus, File.read("#{directory}/err")
      end
      assert_equal 4, JSON.parse(File.read("#{directory}/cow.json"))["processes"].size
    end
  end

  private

  # @return [Array(String, String, Process::Status)] of a look at a command that ends once it has been read
  def run_read(*words) = run_program(*Readings.command(culet_command), "cow", *words, env: NEUTRAL.merge("READINGS" => new_folder))
end
