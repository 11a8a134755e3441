# frozen_string_literal: true

require "scope/target_helper"
require_relative "parts_helper"

# A program linked with musl, as the command line shows it.
class MuslReadingTest < Minitest::Test
  include TargetHelper
  include MuslPartsHelper

  BLOCKS = 5000
  PROGRAM = <<~C.freeze
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    static void *blocks[#{BLOCKS}];
    int main(void) {
      for (int i = 0; i < #{BLOCKS}; i++) memset(blocks[i] = malloc(1000), 1, 1000);
      for (int i = 0; i < #{BLOCKS}; i += 2) free(blocks[i]);
      puts("end");
      fflush(stdout);
      raise(SIGSTOP);
      return 0;
    }
  C

  def setup = assert_musl_gcc

  # A block of 1000 bytes has a slot of 1008, 4 bytes of which are its header.
  def test_blocks_are_told_apart
    with_program do |pid|
      snapshot = read(pid)
      assert_equal %w[musl blocks], [snapshot.allocator.name, snapshot.allocator.level]
      assert_empty snapshot.problems
      assert_whole snapshot
      used = snapshot.malloc.to_h["used_bytes"]
      assert_operator used, :>=, BLOCKS / 2 * 1008
      assert_operator used, :<, (BLOCKS / 2 * 1008) + 65_536
    end
  end

  def test_report_and_doctor_name_musl
    with_program do |pid|
      out, = assert_culet_success("report", pid, env: TestHelper::NEUTRAL)
      assert_match(/^malloc: musl, 1 arena/, out)
      out, = run_culet("doctor", pid, env: TestHelper::NEUTRAL)
      assert_match(/allocator +musl serves malloc/, out)
      assert_match(/glibc +the C library is musl/, out)
    end
  end

  private

  def with_program(&block)
    in_directory do |directory|
      source = File.join(directory, "program.c")
      File.write(source, PROGRAM)
      assert_success("musl-gcc", "-O1", "-fno-builtin", "-o", File.join(directory, "program"), source)
      with_frozen(File.join(directory, "program"), &block)
    end
  end
end
