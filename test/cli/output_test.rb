# frozen_string_literal: true

require "json"
require "test_helper"

# What cannot be written to standard output is said, and is no success.
class CliOutputTest < Minitest::Test
  # Verbs that print, and what to give them.
  PRINTING = { "report" => [Process.pid.to_s], "map" => [Process.pid.to_s, "--json"], "cow" => [Process.pid.to_s, "--json"], "doctor" => [], "lib" => [], "env" => ["--json"],
               "compare" => ["--list"], "help" => ["run"], "completion" => ["bash"] }.freeze

  PRINTING.each do |verb, words|
    define_method(:"test_a_full_device_is_an_error_of_#{verb}") do
      err, status = File.open("/dev/full", "w") { |full| culet(verb, *words, out: full) }
      assert_equal [1, "culet: cannot write to standard output: no space left on device\n"], [status.exitstatus, err.lines.last]
    end
  end

  def test_a_full_device_is_an_error_of_out
    err, status = culet("lib", "--out", "/dev/full", out: File::NULL)
    assert_equal 1, status.exitstatus
    assert_match(%r{\Aculet: cannot write /dev/full: no space left on device\n\z}, err)
  end

  def test_a_closed_output_is_an_error
    out, err, status = run_program("sh", "-c", 'exec "$@" >&-', "sh", *culet_command, "lib")
    assert_equal ["", "culet: cannot write to standard output: it is closed\n", 1], [out, err, status.exitstatus]
  end

  # As with `culet run --help | head -1`.
  def test_a_reader_that_has_seen_enough_is_no_failure
    reader, writer = IO.pipe
    writer.fcntl(F_SETPIPE_SZ, 4096) # a page at the least, and more is written than that
    err_reader, err_writer = IO.pipe
    pid = spawn(*culet_command, "completion", "bash", out: writer, err: err_writer)
    [writer, err_writer].each(&:close)
    assert_equal 1, reader.readpartial(1).size
    reader.close
    _, status = Process.wait2(pid)
    assert_equal ["", 0], [err_reader.read, status.exitstatus]
  ensure
    [reader, err_reader].compact.each(&:close)
  end

  # The report and the status count.
  def test_a_closed_error_output_costs_nothing
    out, = assert_success("sh", "-c", 'exec "$@" 2>&-', "sh", *culet_command, "report", Process.pid.to_s, "--json")
    assert_equal Process.pid, JSON.parse(out)["pid"]
  end

  def test_the_compiled_programs_say_so_too
    directory = new_folder
    assert_culet_success("trace", "-o", "#{directory}/t", "--", "/bin/ls", "/")
    { [File.join(ROOT, "reader/build/culet-scope"), Process.pid.to_s] => /\Aculet-scope: .*[Nn]o space left/,
      [File.join(ROOT, "replay/build/culet-replay"), "--list", "#{directory}/t"] => /no space left/i }.each do |command, sentence|
      err_reader, err_writer = IO.pipe
      pid = File.open("/dev/full", "w") { |full| spawn(*command, out: full, err: err_writer) }
      err_writer.close
      _, status = Process.wait2(pid)
      text = err_reader.read
      err_reader.close
      assert_equal 1, status.exitstatus, command.first
      assert_match sentence, text
    end
  end

  private

  F_SETPIPE_SZ = 1031 # fcntl(2)
  private_constant :F_SETPIPE_SZ

  # @return [Array(String, Process::Status)] what it wrote to standard error, and how it ended
  def culet(*words, out:)
    reader, writer = IO.pipe
    pid = spawn(NEUTRAL, *culet_command, *words, in: File::NULL, out: out, err: writer)
    writer.close
    text = reader.read
    [text, Process.wait2(pid).last]
  ensure
    reader&.close
  end
end
