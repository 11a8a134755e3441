# frozen_string_literal: true

require_relative "trace_helper"

# `culet trace`: usage, files that it replaces, messages.
class TraceVerbTest < Minitest::Test
  include TraceHelper

  {
    [] => /no command given/, ["--"] => /no command given/, ["ls"] => /before the --/, ["--limit", "much", "--", "true"] => /--limit takes a size/,
    ["--allocator", "nosuch", "--", "true"] => /no allocator "nosuch"/, ["--nosuch", "--", "true"] => /invalid option/
  }.each do |words, message|
    define_method(:"test_wrong_usage_#{words.join("_")}") do
      assert_sentence(message, "trace", *words, status: 2)
    end
  end

  def test_places_that_cannot_be_written_are_named_before_the_command_starts
    { "/no/such/folder/t" => /does not exist/, @directory => /is a directory; give a file/ }.each do |file, message|
      out, err, status = run_culet("trace", "-o", file, "--", "echo", "started", env: NEUTRAL)
      assert_equal [1, "", 1], [status.exitstatus, out, err.lines.size]
      assert_match message, err
    end
  end

  def test_a_file_that_is_no_trace_is_not_replaced
    File.write(path, "precious")
    out, err, status = run_culet("trace", "-o", path, "--", "echo", "started", env: NEUTRAL)
    assert_equal [1, ""], [status.exitstatus, out]
    assert_match(/exists and is not a trace/, err)
    assert_equal "precious", File.read(path)
  end

  def test_an_earlier_trace_is_replaced_with_its_childrens
    program = compile("if (argc > 1 && !fork()) { free(malloc(1003)); _exit(0); } wait(NULL); free(malloc(1001));")
    record(program, "fork")
    assert_equal 2, files.size
    File.write(path("t.trace.notes"), "mine")
    File.write(path("t.trace.77"), "mine too")
    record(program)
    assert_equal ["t.trace"], files
    assert_equal ["mine", "mine too"], [File.read(path("t.trace.notes")), File.read(path("t.trace.77"))]
  end

  def test_without_a_name_it_is_culet_trace
    assert_culet_success("trace", "--", "/bin/ls", env: NEUTRAL, chdir: @directory)
    assert File.exist?(path("culet.trace"))
  end

  def test_json_is_one_document_on_stdout
    out, err, status = run_culet("trace", "--json", "-o", path, "--", "sh", "-c", "echo spoken; exit 5", env: NEUTRAL)
    assert_equal 5, status.exitstatus, err
    assert_includes err, "spoken\n"
    document = JSON.parse(out)
    assert_equal [5, nil], document.values_at("exit_status", "signal")
    trace = document["traces"].first
    assert_equal [path, ["sh", "-c", "echo spoken; exit 5"], "glibc", 0, nil, File.size(path)],
                 trace.values_at("file", "command", "allocator", "lost", "stopped", "file_bytes")
  end

  def test_the_commands_input_output_and_ending_are_its_own
    out, err, = run_culet("trace", "-o", path, "--", "sh", "-c", "cat; exit 7", env: NEUTRAL, stdin: "in")
    assert_equal "in", out
    assert_match(/^culet: the command ended with status 7$/, err)
    assert_match(/^culet: wrote #{path} \(/, err)
  end

  def test_a_signal_is_the_commands
    out = path("out")
    pid = spawn(NEUTRAL, *culet_command, "trace", "-o", path, "--", "sh", "-c", "trap 'echo caught; exit 0' TERM; echo up; while :; do sleep 0.05; done",
                out: out, err: path("err"), pgroup: true)
    assert_settles("it is up") { File.exist?(out) && File.read(out).include?("up") }
    Process.kill(:TERM, pid)
    assert_predicate Process.wait2(pid).last, :success?
    assert_equal "up\ncaught\n", File.read(out)
    assert_match(/wrote/, File.read(path("err")))
  end

  def test_a_program_into_which_nothing_can_be_preloaded
    err = record(compile("free(malloc(1001));", "-static"), success: false)
    assert_match(/is statically linked/, err)
    assert_match(/^culet: nothing was recorded/, err)
  end

  def test_a_program_that_is_not_there_is_one_sentence
    err = record("no-such-program", success: false)
    assert_equal "culet: cannot run no-such-program: no such program\n", err
  end
end
