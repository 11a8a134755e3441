# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/tools/replay"
require "culet/tools/trace"
require "json"

# Shared by the tests of traces: a directory, small C programs, and the operations of a trace.
module TraceHelper
  FIXTURES = Dir[File.join(TestHelper::ROOT, "test/fixtures/traces/*.trace")].freeze

  def setup = @directory = new_folder

  def path(name = "t.trace") = File.join(@directory, name)

  # @param main [String] a C program's text, or what its main does
  # @return [String] the program
  def compile(main, *flags, name: "program", language: "cc")
    source = path("#{name}.c")
    main = "int main(int argc, char **argv) { (void)argc; (void)argv; #{main}; return 0; }" unless main.include?("int main") || flags.include?("-shared")
    File.write(source, "#define _GNU_SOURCE\n#include <malloc.h>\n#include <pthread.h>\n#include <sched.h>\n#include <signal.h>\n" \
                       "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/syscall.h>\n" \
                       "#include <sys/wait.h>\n#include <unistd.h>\n#{main}\n")
    assert_success(language, "-O0", "-fno-builtin", "-w", "-pthread", *flags, "-o", path(name), source)
    path(name)
  end

  # Records a command.
  #
  # @return [String] what the verb said on stderr
  def record(*command, file: path, options: [], env: {}, success: true)
    out, err, status = run_culet("trace", "-o", file, *options, "--", *command, env: TestHelper::NEUTRAL.merge(env))
    assert_equal success, status.success?, out + err
    err
  end

  # @return [Hash] what is in a trace
  def info(file = path) = Culet::Replay::Program.new(file).info

  # @return [Array<Array<String>>] its operations: name, block, bytes, alignment
  def operations(file = path) = Culet::Replay::Program.new(file).operations.lines.map { |line| line.split.drop(2) }

  # @return [Array<Array<String>>] names and sizes of those operations that ask for one of these sizes
  def asked(*sizes, file: path)
    operations(file).filter_map { |name, _, bytes, alignment| [name, *bytes, *alignment] if sizes.map(&:to_s).include?(bytes) }
  end

  def play(file = path, env: {}, **settings)
    Culet::Replay::Program.new(file, options: Culet::Replay::Program::Options.new(**settings)).run(TestHelper::NEUTRAL.merge(env), seconds: TestHelper::PATIENCE_SECONDS)
  end

  # @return [Array<String>] the trace files there are, without the folder
  def files = Culet::Trace::Files.new(path).files.map { |file| File.basename(file) }

  # Asserts that nothing is missing in a trace: each free has its malloc.
  def assert_whole(facts)
    assert_equal [0, 0], facts.values_at("unknown_blocks", "implied_frees")
  end
end
