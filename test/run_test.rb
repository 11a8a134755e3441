# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/version"
require "json"

class RunTest < Minitest::Test
  ASK = ["-I#{TestHelper::ROOT}/lib", "-rculet", "-rjson", "-e", "puts JSON.generate(Culet.allocator)"].freeze

  TestHelper.allocators.each do |name|
    define_method(:"test_a_ruby_really_runs_on_#{name}") do
      out, err = assert_culet_success("run", "--allocator", name, "--", RbConfig.ruby, *ASK, env: NEUTRAL)
      assert_equal name, JSON.parse(out)["name"]
      assert_empty err
    end
  end

  def test_culet_is_the_default_and_active
    out, = run_culet("run", "--", RbConfig.ruby, *ASK, env: NEUTRAL)
    answer = JSON.parse(out)
    assert_equal ["culet", true, Culet::VERSION], answer.values_at("name", "active", "version")
  end

  def test_the_command_is_the_same_process
    pid, status = nil
    Open3.popen2(NEUTRAL, *culet_command, "run", "--", "sh", "-c", "echo $$") do |_, out, process|
      pid = out.read.to_i
      status = process.value
      assert_equal process.pid, pid
    end
    assert_predicate status, :success?
  end

  def test_status_arguments_and_standard_input_are_the_commands_own
    out, _, status = run_culet("run", "--", "sh", "-c", 'printf "%s|" "$@"; cat; exit 42', "sh", "a b", "--json", "",
                               env: NEUTRAL, stdin: "in")
    assert_equal "a b|--json||in", out
    assert_equal 42, status.exitstatus
  end

  def test_a_descriptor_handed_down_reaches_the_command
    reader, writer = IO.pipe
    pid = spawn(NEUTRAL, *culet_command, "run", "--", "sh", "-c", "echo through >&7", 7 => writer)
    writer.close
    assert_equal "through\n", reader.read
    Process.wait(pid)
  ensure
    reader.close
  end

  def test_the_users_preload_and_rubyopt_are_kept
    with_empty_library do |library|
      env = NEUTRAL.merge("LD_PRELOAD" => library, "RUBYOPT" => "-W0")
      out, = run_culet("run", "-a", "jemalloc", "--", "sh", "-c", 'echo "$LD_PRELOAD"; echo "$RUBYOPT"; cat /proc/self/maps', env: env)
      preload, rubyopt, *maps = out.lines(chomp: true)
      assert_equal "#{Culet::Allocators.parse("jemalloc").library}:#{library}", preload
      assert_equal "-W0", rubyopt
      assert(maps.any? { |line| line.end_with?(library) }, "the user's library is loaded")
    end
  end

  def test_settings_reach_the_command
    out, = run_culet("run", "--allocator", "glibc:arena_max=2", "--", "sh", "-c", 'echo "$MALLOC_ARENA_MAX"', env: NEUTRAL)
    assert_equal "2\n", out
  end

  def test_glibc_takes_a_preloaded_allocator_away
    env = NEUTRAL.merge("LD_PRELOAD" => Culet::Allocators.parse("jemalloc").library)
    out, = run_culet("run", "--allocator", "glibc", "--", RbConfig.ruby, *ASK, env: env)
    assert_equal "glibc", JSON.parse(out)["name"]
  end

  {
    [] => /no command given/, ["--"] => /no command given/, ["ls"] => /before the --/, ["--allocator"] => /missing argument/,
    ["--allocator", "nosuch", "--", "true"] => /no allocator "nosuch"/, ["--json", "--", "true"] => /culet env --json/,
    ["--nosuch", "--", "true"] => /invalid option: --nosuch/
  }.each do |words, message|
    define_method(:"test_wrong_usage_#{words.join("_")}") do
      assert_sentence(message, "run", *words, status: 2)
    end
  end

  def test_a_command_that_is_not_there_is_one_sentence
    %w[no-such-program ./no/such].each { |name| assert_sentence("culet: cannot run #{name}: no such program\n", "run", "--", name, status: 127) }
  end

  # In the locale C no byte beyond ASCII is text.
  def test_folders_whose_names_are_no_text
    folder = File.join(new_folder, "\u00e9\xFF")
    Dir.mkdir(folder)
    File.write("#{folder}/program", "#!/bin/sh\necho well")
    File.chmod(0o755, "#{folder}/program")
    ["C", "C.UTF-8"].each do |locale|
      out, err, = run_culet("run", "--", "program", env: { "PATH" => "#{ENV.fetch("PATH")}:#{folder}", "LC_ALL" => locale })
      assert_equal ["well\n", ""], [out, err]
    end
  end

  def test_what_cannot_be_run_is_one_sentence
    directory = new_folder
    _, err, status = run_culet("run", "--", directory)
    assert_equal [126, "culet: cannot run #{directory}: it is a directory\n"], [status.exitstatus, err]

    script = File.join(directory, "script")
    File.write(script, "#!/no/such/interpreter\n")
    _, err, status = run_culet("run", "--", script)
    assert_equal 126, status.exitstatus
    assert_match(/chmod \+x/, err)

    File.chmod(0o755, script)
    _, err, status = run_culet("run", "--", script)
    assert_equal [127, "culet: cannot run #{script}: /no/such/interpreter does not exist\n"], [status.exitstatus, err]
  end

  def test_a_static_program_runs_with_a_warning
    directory = new_folder
    program = compile(directory, "int main(void) { return 7; }", "-static")
    _, err, status = run_culet("run", "--", program, env: NEUTRAL)
    assert_equal 7, status.exitstatus
    assert_match(/\Aculet: #{program} is statically linked; .*own allocator\.\n\z/, err)

    _, err, = run_culet("run", "--allocator", "glibc", "--", program, env: NEUTRAL)
    assert_empty err, "nothing is preloaded, so nothing is to be warned of"
  end

  def test_a_script_whose_interpreter_is_static_gets_the_warning_too
    directory = new_folder
    program = compile(directory, "int main(void) { return 7; }", "-static")
    script = File.join(directory, "script")
    File.write(script, "#!#{program} -x\n")
    File.chmod(0o755, script)
    _, err, status = run_culet("run", "--", script, env: NEUTRAL)
    assert_equal 7, status.exitstatus
    assert_match(/#{program} is statically linked/, err)
  end

  def test_a_set_user_id_program_runs_with_a_warning
    skip "only root can make a program of another user" unless Process.uid.zero?

    directory = new_folder
    program = compile(directory, "int main(void) { return 7; }")
    File.chown(65_534, nil, program)
    File.chmod(0o4755, program)
    File.chmod(0o755, directory)
    _, err, status = run_culet("run", "--", program, env: NEUTRAL)
    assert_equal 7, status.exitstatus
    assert_match(/set-user-ID/, err)
  end

  def test_a_program_for_another_machine_gets_the_warning
    directory = new_folder
    program = compile(directory, "int main(void) { return 7; }")
    image = File.binread(program)
    image[18, 2] = [243].pack("S<") # EM_RISCV
    File.binwrite(program, image)
    _, err, status = run_culet("run", "--", program, env: NEUTRAL)
    refute_predicate status, :success?
    assert_match(/\Aculet: #{program} is .* another architecture/, err.lines.first)
  end

  def test_a_missing_library_names_the_package_and_does_not_start_the_command
    script = <<~RUBY
      require "culet/cli"
      require "culet/allocators"
      # A machine without the package: nothing in the loader's cache, nothing in its folders.
      class Culet::Allocators::Locator
        private def installed = []
        private def preferred = []
      end
      exit Culet::CLI.run(%w[run --allocator jemalloc -- echo started])
    RUBY
    out, err, status = run_program(RbConfig.ruby, "-W0", "-I#{ROOT}/lib", "-e", script)
    assert_equal [1, ""], [status.exitstatus, out]
    assert_match(/\Aculet: jemalloc is not installed: install the Debian package libjemalloc2/, err)
    assert_equal 1, err.lines.size
  end

  def test_help_lists_allocators_settings_and_variables
    out, err = assert_culet_success("run", "--help")
    assert_empty err
    (Culet::Allocators.names + %w[arena_max release_rate CULET_CHILDREN Examples: --allocator]).each do |word|
      assert_includes out, word
    end
  end

  # CULET_CHILDREN, as `run --help` describes it.
  def test_programs_started_from_ruby_are_dormant_and_rubies_are_not
    script = "system('python3', '-c', 'import ctypes; print(ctypes.CDLL(None).culet_active())'); " \
             "system(#{RbConfig.ruby.inspect}, *#{ASK.inspect})"
    out, = assert_culet_success("run", "--", RbConfig.ruby, "-e", script.sub("'python3'", "'/usr/bin/python3'"), env: NEUTRAL)
    python, ruby = out.lines
    assert_equal "0\n", python
    assert_equal true, JSON.parse(ruby)["active"]
  end

  def test_a_program_started_directly_is_active_even_below_a_ruby_that_runs_culet
    ask = ["/usr/bin/python3", "-c", "import ctypes; print(ctypes.CDLL(None).culet_active())"]
    out, = run_culet("run", "--", *ask, env: NEUTRAL)
    assert_equal "1\n", out
    out, = run_culet("run", "--", *culet_command, "run", "--", *ask, env: NEUTRAL)
    assert_equal "1\n", out
  end

  def test_children_all_and_none
    ask = "system('/usr/bin/python3', '-c', 'import ctypes; print(ctypes.CDLL(None).culet_active())')"
    out, = run_culet("run", "--allocator", "culet:children=all", "--", RbConfig.ruby, "-e", ask, env: NEUTRAL)
    assert_equal "1\n", out
    out, = run_culet("run", "--allocator", "culet:children=none", "--", RbConfig.ruby, "-e",
                     "puts ENV['LD_PRELOAD'].inspect; system('grep', '-c', 'libculet', '/proc/self/maps'); " \
                     "puts File.read('/proc/self/maps').include?('libculet')", env: NEUTRAL)
    assert_equal "nil\n0\ntrue\n", out
  end

  private

  def with_empty_library
    Dir.mktmpdir do |directory|
      yield compile(directory, "int culet_test_nothing;", "-shared", "-fPIC", name: "libnothing.so")
    end
  end

  def compile(directory, source, *flags, name: "program") = compile_c(File.join(directory, name), source, *flags)
end
