# frozen_string_literal: true

require_relative "verb_helper"

# Commands that are run with the profile on.
class ProfileCommandTest < Minitest::Test
  include ProfileVerbHelper

  SMALL = ["--sample", "16k", "--by", "line"].freeze

  def test_a_ruby_program_at_its_end
    folder = new_folder
    document = profile(*SMALL, "--", RbConfig.ruby, program(folder, "keep(1_000); puts :said; warn :noted"))
    assert_kept(document)
    assert_equal [SAMPLE, "live"], document.values_at("sample_bytes", "view")
    assert_equal "noted\nsaid\n", @err.lines.sort.join
  end

  # The output of the command is its own; the report follows.
  def test_the_report_in_words
    folder = new_folder
    out, err, status = run_culet("profile", *SMALL, "--", RbConfig.ruby, program(folder, "keep(1_000); puts :said"), env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    assert_match(/\Asaid\n/, out)
    assert_match(/app\.rb:#{KEEPING_LINE}/, out)
  end

  def test_forked_workers_are_added_up
    folder = new_folder
    path = program(folder, "keep(500); pids = Array.new(2) { fork { keep(250) } }; pids.each { |pid| Process.wait(pid) }")
    document = profile(*SMALL, "--", RbConfig.ruby, path)
    # What the workers have from their parent is counted once.
    assert_kept(document)
    assert_equal 3, document["processes"].size
  end

  def test_the_exit_status_is_passed_on
    folder = new_folder
    { "exit 7" => [7, /\Aculet: the command ended with status 7\n\z/], "abort 'over'" => [1, /\Aover\nculet: the command ended with status 1\n\z/],
      "Process.kill(:TERM, Process.pid); sleep" => [143, /culet: the command was ended by SIGTERM\n\z/] }.each do |code, (expected, sentence)|
      out, err, status = run_culet("profile", *SMALL, "--", RbConfig.ruby, program(folder, "keep(1_000)\n#{code}"), env: TestHelper::NEUTRAL)
      assert_equal expected, status.exitstatus, err
      assert_match(sentence, err)
      assert_match(/app\.rb:#{KEEPING_LINE}/, out)
    end
  end

  def test_ctrl_c_ends_the_command_and_reports
    folder = new_folder
    path = program(folder, "keep(1_000); begin; puts :up; $stdout.flush; sleep; rescue Interrupt; exit 3; end")
    command = [*culet_command, "profile", *SMALL, "--", RbConfig.ruby, path]
    Open3.popen3(TestHelper::NEUTRAL, *command, pgroup: true) do |_, out, _, culet|
      assert_equal "up\n", out.gets
      Process.kill(:INT, -culet.pid)
      assert_match(/app\.rb:#{KEEPING_LINE}/, out.read)
      assert_equal 3, culet.value.exitstatus
    ensure
      end_group(culet.pid) if culet.alive?
    end
  end

  # One that keeps 8 MB in two blocks of a loop, by malloc.
  C_PROGRAM = <<~C
    #include <stdlib.h>
    #include <string.h>
    __attribute__((noinline)) char *keep_block(void) { return memset(malloc(4096), 1, 4096); }
    int main(void)
    {
        static char *kept[2048];
        for (int i = 0; i < 2048; i++)
            kept[i] = keep_block();
        return kept[0] && kept[2047] ? 5 : 6;
    }
  C

  def test_a_program_without_ruby
    folder = new_folder
    compile_c("#{folder}/keep", C_PROGRAM, "-O1", "-g")
    out, err, status = run_culet("profile", "--sample", "16k", "--json", "--", "#{folder}/keep", env: TestHelper::NEUTRAL)
    assert_equal 5, status.exitstatus, err
    site = JSON.parse(out)["sites"].first
    assert_includes site["frames"].map { |frame| frame["method"] }, "keep_block"
    assert_operator site["low_bytes"], :<=, 2048 * 4096
  end

  # A bundle that does not have culet.
  def test_a_program_of_a_bundle
    folder = new_folder
    File.write(File.join(folder, "Gemfile"), "")
    path = program(folder, "require 'bundler/setup'; keep(1_000)")
    env = TestHelper::NEUTRAL.merge("BUNDLE_GEMFILE" => File.join(folder, "Gemfile"), "RUBYOPT" => "-W:no-deprecated")
    assert_kept(profile(*SMALL, "--", RbConfig.ruby, "-S", "bundle", "exec", "ruby", path, env: env))
  end

  def test_commands_that_write_no_profile
    # A shell takes less than the two seconds after which a process writes its profile, on a busy machine too.
    assert_refused(/sh was killed by SIGKILL before it wrote its profile/, "--", "sh", "-c", "kill -KILL $$", status: 137)
    sentence = /no process wrote a profile: sh did not use culet's allocator, or was replaced by another program/
    assert_refused(sentence, "--", "sh", "-c", "unset LD_PRELOAD; exec true")
    assert_refused(/cannot run no-such-program: no such program/, "--", "no-such-program", status: 127)
  end

  def test_a_command_that_does_not_start_leaves_no_folder
    folder = new_folder
    code = <<~RUBY
      require "culet/tools/profile/command"
      Culet::Profile::Command.new(command: ["none"], program: "/nonexistent/none").call
    RUBY
    env = TestHelper::NEUTRAL.merge("TMPDIR" => folder)
    _, err, status = run_program(RbConfig.ruby, "-I#{LIBRARY}", "-e", code, env: env)
    assert_equal 1, status.exitstatus
    assert_match(/No such file or directory.*nonexistent/, err)
    assert_empty Dir.children(folder)
  end

  def test_an_allocator_that_cannot_be_preloaded_leaves_no_folder
    folder = new_folder
    Dir.mkdir("#{folder}/a b")
    library = compile_c("#{folder}/a b/libx.so", "void *malloc(unsigned long bytes) { return (void *)bytes; }", "-shared", "-fPIC", "-fno-builtin")
    _, err, status = run_culet("profile", "--allocator", library, "--", "true", env: TestHelper::NEUTRAL.merge("TMPDIR" => folder))
    assert_equal 1, status.exitstatus
    assert_match(/cannot be preloaded, because the loader takes spaces/, err)
    assert_equal ["a b"], Dir.children(folder)
  end
end
