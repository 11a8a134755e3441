# frozen_string_literal: true

$VERBOSE = true
# Minitest would load the plugins of all installed gems: railties' brings Rails along and prints failures its own way.
ENV["MT_NO_PLUGINS"] = "1"
require_relative "../bin/gems" if File.exist?(File.expand_path("../bin/gems.rb", __dir__))
require "fileutils"
require "io/wait"
require "open3"
require "rbconfig"
require "stringio"
require "timeout"
require "tmpdir"

# Agents of programs that a test kills leave their sockets behind: here, and not in the machine's folder.
ENV["XDG_RUNTIME_DIR"] = Dir.mktmpdir("culet-run").tap do |folder|
  own = Process.pid
  # Of a file that cannot be loaded Minitest runs nothing, not even after_run. Before autorun: the last to be called.
  at_exit { FileUtils.remove_entry(folder) if Process.pid == own }
end
require "minitest/autorun"

# A signal that the tests were started to ignore (as by a shell's `&`) would be ignored by the programs they start.
%w[HUP INT TERM].each { |signal| trap(signal, "DEFAULT") }

# What the tests share. Everything a test starts is waited for or ended by it.
module TestHelper
  ROOT = File.expand_path("..", __dir__)

  # Longer than any test's program may take; past it the program is ended and the test fails.
  PATIENCE_SECONDS = 120

  # Bytes of a string that lies in a block of malloc, because no slot of this Ruby is so large.
  LONG_STRING_BYTES = [GC::INTERNAL_CONSTANTS.fetch(:RVARGC_MAX_ALLOCATE_SIZE, 0), 640].max + 60

  # A large heap at the start of Ruby, by the variable that this one reads.
  INITIAL_HEAP = if GC.stat.key?(:heap_allocatable_bytes) then { "RUBY_GC_HEAP_INIT_BYTES" => "36M" }
                 else { RUBY_VERSION < "3.3" ? "RUBY_GC_HEAP_INIT_SLOTS" : "RUBY_GC_HEAP_0_INIT_SLOTS" => "900000" }
                 end

  # Whether Ruby has touched all of its main thread's stack, as with -fstack-clash-protection.
  RESIDENT_STACK = File.read("/proc/self/smaps")[/\[stack\]\n.*?^Rss: +(\d+)/m, 1].to_i > 4096

  # A test that asserted nothing could not fail.
  def after_teardown
    super
    FileUtils.rm_rf(@folders) if @folders
    flunk "it asserted nothing" if assertions.zero? && failures.empty?
  end

  # Runs the command line of this checkout in a process of its own, with Ruby's warnings on.
  #
  # @return [Array(String, String, Process::Status)] stdout, stderr, status
  def run_culet(*argv, env: {}, stdin: "", chdir: ROOT)
    run_program(*culet_command, *argv, env: env, stdin: stdin, chdir: chdir)
  end

  # As run_program, of a program that must succeed.
  #
  # @return [Array(String, String)] stdout, stderr
  def assert_success(*command, **options)
    out, err, status = run_program(*command, **options)
    assert_predicate status, :success?, out + err
    [out, err]
  end

  # As run_culet, which must succeed.
  def assert_culet_success(*argv, **options) = assert_success(*culet_command, *argv, **options)

  # Runs the command line in this process, for calls that need no other.
  #
  # @return [Array(String, String, Integer)] stdout, stderr, exit status
  def culet(*words)
    require "culet/cli"
    out = StringIO.new
    err = StringIO.new
    status = Culet::CLI.run(words, out: out, err: err)
    [out.string, err.string, status]
  end

  # As culet, which must succeed.
  #
  # @return [Array(String, String)] stdout, stderr
  def assert_culet(*words)
    out, err, status = culet(*words.map(&:to_s))
    assert_equal 0, status, err + out
    [out, err]
  end

  # Asserts that the command line, in this process, ends with that status, one sentence and nothing else.
  #
  # @param pattern [Regexp, String] what the sentence has
  def assert_sentence(pattern, *words, status: 1)
    out, err, ended = culet(*words)
    assert_equal [status, ""], [ended, out], "culet #{words.join(" ")}: #{err}"
    assert_match(/\Aculet: .+\n\z/, err)
    assert_match pattern, err
  end

  # @return [Array<String>] the words that start the command line
  def culet_command
    [RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-r#{ROOT}/bin/gems.rb", "#{ROOT}/exe/culet"]
  end

  # Copies the Ruby files of this checkout, with the extensions that are built in lib/culet.
  #
  # @param folder [String] where lib and boot/lib are then
  def copy_ruby_files(folder)
    FileUtils.mkdir_p("#{folder}/boot")
    FileUtils.cp_r("#{ROOT}/lib", folder)
    FileUtils.cp_r("#{ROOT}/boot/lib", "#{folder}/boot")
  end

  # Runs a program in a process group of its own and ends the group when it takes too long.
  #
  # @return [Array(String, String, Process::Status)] stdout, stderr, status
  def run_program(*command, env: {}, stdin: "", chdir: ROOT, patience: PATIENCE_SECONDS)
    Open3.popen3(env, *command.map(&:to_s), chdir: chdir, pgroup: true) do |input, output, error, process|
      readers = [output, error].map { |io| Thread.new { io.read } }
      readers.each { |reader| reader.report_on_exception = false } # their values raise it
      write_and_close(input, stdin)
      flunk "#{command.join(" ")} did not end within #{patience} s" unless process.join(patience)
      [*readers.map(&:value), process.value]
    ensure
      end_group(process.pid) if process.alive? # it takes too long, or the test is interrupted
    end
  end

  # Waits for what the block returns.
  #
  # @param what [String, #call] told where it does not come
  # @return [Object] what the block returned, once that is true
  def assert_settles(what = "it comes to pass", seconds: PATIENCE_SECONDS)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    sleep 0.02 until (result = yield) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert result, -> { "within #{seconds} s: #{what.respond_to?(:call) ? what.call : what}" }
    result
  end

  # Starts a program, yields its pid once it has printed a line, and ends it with all that it started in its group.
  #
  # @param err [IO, String] where its standard error goes
  def with_program(*command, env: {}, err: $stderr)
    with_started(*command, env: env, err: err) do |pid, out|
      assert out.wait_readable(PATIENCE_SECONDS), "#{command.first} printed nothing"
      out.gets
      yield pid
    end
  end

  # Starts a program, and ends it with all that it started in its group when the block is done.
  #
  # @param options [Hash] of spawn: standard error, the directory
  # @yieldparam pid [Integer] for which the block may wait
  # @yieldparam out [IO] what the program prints
  def with_started(*command, env: {}, **options)
    reader, writer = IO.pipe
    pid = spawn(env, *command.map(&:to_s), in: File::NULL, out: writer, pgroup: true, **options)
    writer.close
    yield pid, reader
  ensure
    end_started(pid) if pid
    [reader, writer].compact.each(&:close)
  end

  # As with_started, with a pipe that the program reads.
  #
  # @yieldparam feed [IO] besides: what is written there the program gets
  def with_fed(*command, env: {})
    input, feed = IO.pipe
    with_started(*command, env: env, in: input) do |pid, out|
      input.close # or the end of `feed` would not be seen
      yield pid, out, feed
    end
  ensure
    [input, feed].compact.each(&:close)
  end

  # Stops a process. One that has not stopped yet may still answer.
  def stop(pid)
    Process.kill(:STOP, pid)
    assert_settles("process #{pid} has stopped") { Dir["/proc/#{pid}/task/*/stat"].all? { |file| File.read(file).match?(/\) T /) } }
  end

  # @return [Process::Status] how a program of with_started ended
  def await_end(pid)
    Timeout.timeout(PATIENCE_SECONDS) { Process.wait2(pid).last }
  end

  # @return [Array<String>] the allocators that a test can run on: all that bin/setup installs must be there;
  #   rpmalloc, which only the newest releases of Debian package, may be
  def self.allocators
    require "culet/allocators"
    Culet::Allocators.names.select { |name| name != "rpmalloc" || Culet::Allocators.parse(name).available? }
  end

  # A Ruby program that says that it is up and then waits to be ended.
  WAITING = "puts :up; $stdout.flush; sleep"

  # @return [Boolean] whether bin/test --all runs: the slow tests too
  def all_tests? = ENV.key?("CULET_TEST_ALL")

  # @return [String] a folder for the test, which is removed after it
  def new_folder = (@folders ||= []).push(File.realpath(Dir.mktmpdir("culet-test"))).last

  # @return [String] a folder for all tests of the run
  def self.lasting_folder = Dir.mktmpdir("culet-test").tap { |folder| Minitest.after_run { FileUtils.rm_rf(folder) } }

  # Compiles C for all tests of the run; a warning is an error.
  #
  # @return [String] path of what it makes
  def self.build(*words)
    output = File.join(lasting_folder, "built")
    system("cc", "-Wall", "-Wextra", "-Werror", "-o", output, *words, exception: true)
    output
  end

  # @yieldparam directory [String] that the block has for itself
  def in_directory
    Dir.mktmpdir("culet-test") { |directory| yield File.realpath(directory) }
  end

  # Compiles a program or a library.
  #
  # @param output [String] its path
  # @param source [String] C
  # @return [String] its path
  def compile_c(output, source, *flags)
    File.write("#{output}.c", "#{source}\n")
    _, err, status = run_program("cc", "-w", "-o", output, "#{output}.c", *flags)
    assert_predicate status, :success?, err
    output
  end

  # Leaves a slow test to bin/test --all.
  def skip_unless_all = (skip "run by bin/test --all" unless all_tests?)

  # A variable set by whoever runs the tests must not decide their outcome.
  NEUTRAL = %w[LD_PRELOAD MALLOC_ARENA_MAX MALLOC_CONF GLIBC_TUNABLES RUBYOPT CULET_CHILDREN CULET_INHERITED NO_COLOR COLUMNS]
            .concat(ENV.keys.grep(/\ACULET_TEST_/)).to_h { |name| [name, nil] }.freeze

  private

  def write_and_close(io, text)
    io.write(text)
  rescue Errno::EPIPE
    nil # the program ended without reading
  ensure
    io.close
  end

  def end_started(pid)
    end_group(pid)
    Process.wait(pid)
  rescue Errno::ECHILD
    nil # the test has waited for it
  end

  def end_group(pid)
    Process.kill(:KILL, -pid)
  rescue Errno::ESRCH
    nil # it has ended by itself
  end
end

module Minitest
  class Test
    include TestHelper
  end
end
