# frozen_string_literal: true

require_relative "agent_helper"
require "culet/runtime/blackbox/folder"

# Forked copies beside a program that ends.
class AgentCopyTest < Minitest::Test
  include AgentHelper

  # Has two locks: of a file, and of its black box. Its copy writes its number and waits for a file.
  PROGRAM = <<~RUBY.freeze
    LOCK = File.open("lock", "w").tap { |file| file.flock(File::LOCK_EX) }
    reporter = Object.new
    def reporter.started? = true
    def reporter.document(*)
      File.write("waits", File.readlink("/proc/self")) # Ruby knows the program's
      sleep 0.01 until File.exist?("go")
      ""
    end
    Culet::Agent.unused_reporter = reporter
    #{SAY_UP}
    sleep
  RUBY

  def test_a_program_that_ends_leaves_neither_locks_nor_pipes_to_its_copy
    Dir.mktmpdir do |folder|
      with_started(*CARRYING, "-rculet/blackbox", "-e", PROGRAM, env: TestHelper::NEUTRAL.merge("CULET_BLACKBOX" => folder), chdir: folder) do |pid, out|
        assert_equal "up\n", out.gets
        socket = endpoint(pid)
        socket.write("culet-agent 1 unused limit_ms=60000 wait_ms=5000\n")
        copy = await_number(File.join(folder, "waits"))
        Process.kill(:KILL, pid)
        await_end(pid)
        assert out.wait_readable(PATIENCE_SECONDS), "the copy has the program's standard output"
        assert_nil out.gets
        File.open(File.join(folder, "lock")) { |file| assert_equal 0, file.flock(File::LOCK_EX | File::LOCK_NB) }
        assert_equal 1, Culet::BlackBox::Folder.new(folder).ended.size
        assert_match(/\A\d+ \(culet-unused\) [RSD]/, File.read("/proc/#{copy}/stat"))
        assert_match(/^Max file size +#{16 << 30} +#{16 << 30} /, File.read("/proc/#{copy}/limits"))
      ensure
        File.write(File.join(folder, "go"), "")
        socket&.close
      end
    end
  end

  private

  def await_number(file)
    Timeout.timeout(PATIENCE_SECONDS) { sleep 0.01 until File.size?(file) }
    File.read(file)
  end
end
