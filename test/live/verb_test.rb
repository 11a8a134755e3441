# frozen_string_literal: true

require_relative "live_helper"
require "map/browser"
require "servers/server_helper"

# `culet live` on real processes.
class LiveVerbTest < Minitest::Test
  include LiveHelper

  SLEEPER = "require 'culet/agent'; puts; $stdout.flush; sleep"

  def test_a_wrong_call_is_a_sentence
    folder = new_folder
    File.write("#{folder}/a.live", "{}\n")
    { ["--", "ruby"] => [2, /does not run a command/], ["1", "--port", "70000"] => [2, /--port takes a whole number from 1 to 65535/],
      ["./a.live", "1"] => [2, /processes or one recording, not both/], ["a.live", "--record", "b"] => [2, /--record needs processes; a.live is a recording already/],
      ["a.live"] => [1, /a.live is not a recording/], ["./none.live"] => [1, /there is no file .*none.live; give a recording/], ["999999999"] => [1, /there is no process 999999999/],
      ["no-process-of-this-name"] => [1, /no process has "no-process-of-this-name"/], [Process.pid.to_s, "--for", "x"] => [2, /--for takes a duration/],
      [Process.pid.to_s, "--record", "#{folder}/none/x"] => [1, /cannot write .*none/] }.each do |words, (code, sentence)|
      Dir.chdir(folder) { assert_sentence(sentence, "live", *words, status: code) }
    end
  end

  def test_a_taken_port_is_a_sentence
    TCPServer.open("127.0.0.1", 0) do |other|
      port = other.addr[1].to_s
      assert_sentence("culet: port #{port} is in use; give another one, or leave --port out\n", "live", Process.pid.to_s, "--port", port)
    end
  end

  def test_it_prints_the_address_and_ends_by_a_signal
    with_program(RbConfig.ruby, "-Ilib", "-e", SLEEPER) do |pid|
      with_live(pid.to_s) do |live|
        assert_match(%r{\Ahttp://127\.0\.0\.1:\d+/[\w-]{32,}/\n\z}, live.address)
        states = stream(live.url, 2)
        assert_equal pid, states.last["processes"].values.first["pid"]
        status, err = live.end_with(:INT)
        assert_equal [0, ""], [status.exitstatus, err]
      end
    end
  end

  # Without a browser; INT says where the file is, and the file is what was seen.
  def test_a_recording_without_a_browser
    folder = new_folder
    with_program(RbConfig.ruby, "-Ilib", "-e", SLEEPER) do |pid|
      with_live(pid.to_s, "--record", "#{folder}/a.live", "--json") do |live|
        assert_settles("three moments") { File.file?("#{folder}/a.live") && File.readlines("#{folder}/a.live").size >= 4 }
        assert_equal %w[url port], JSON.parse(live.address).keys
        status, err = live.end_with(:TERM)
        assert_equal 0, status.exitstatus
        assert_match(%r{\Aculet: wrote #{folder}/a.live: \d+ moments\n\z}, err)
      end
      recorded = Recording.new("#{folder}/a.live").history.after(0, 0)
      assert_operator recorded.size, :>=, 3
      with_live("#{folder}/a.live") { |live| assert_equal states(recorded), stream(live.url, recorded.size) }
    end
  end

  def test_a_killed_recorder_leaves_a_recording
    folder = new_folder
    with_program(RbConfig.ruby, "-Ilib", "-e", SLEEPER) do |pid|
      with_live(pid.to_s, "--record", "#{folder}/a.live") do |live|
        assert_settles("two moments") { File.file?("#{folder}/a.live") && File.readlines("#{folder}/a.live").size >= 3 }
        live.end_with(:KILL)
      end
    end
    recording = Recording.new("#{folder}/a.live")
    assert_operator recording.history.after(0, 0).size, :>=, 2
  end

  def test_it_ends_when_the_time_is_over
    with_program(RbConfig.ruby, "-e", "puts; $stdout.flush; sleep") do |pid|
      out, err, status = run_culet("live", pid.to_s, "--for", "1s")
      assert_equal [0, "", 1], [status.exitstatus, err, out.lines.size]
    end
  end

  def test_it_ends_with_the_processes
    with_fed(RbConfig.ruby, "-Ilib", "-e", "puts; $stdout.flush; gets") do |pid, out, feed|
      out.gets
      with_live(pid.to_s) do |live|
        feed.puts
        status, err = live.finish
        assert_equal [0, "culet: all processes have ended\n"], [status.exitstatus, err]
      end
    end
  end

  private

  # `culet live` in a process of its own.
  class Running
    # @return [String] its first line
    attr_reader :address

    def initialize(pid, address, err)
      @pid = pid
      @address = address
      @err = err
    end

    def url = @address.chomp

    # @return [Array(Process::Status, String)] how it ended, and what it wrote to stderr
    def end_with(signal)
      Process.kill(signal, @pid)
      finish
    end

    # @return [Array(Process::Status, String)]
    def finish = [Process.wait2(@pid).last, File.read(@err)]
  end

  def with_live(*words)
    Dir.mktmpdir do |folder|
      with_started(*culet_command, "live", *words, err: "#{folder}/err") do |pid, reader|
        assert reader.wait_readable(PATIENCE), "it printed nothing"
        live = Running.new(pid, reader.gets.to_s, "#{folder}/err")
        refute_empty live.address, -> { File.read("#{folder}/err") }
        yield live
      end
    end
  end

  # @return [Array<Hash>] the first states of the stream
  def stream(url, number)
    uri = URI("#{url}moments")
    Socket.tcp("127.0.0.1", uri.port) do |socket|
      socket.write("GET #{uri.path} HTTP/1.1\r\nHost: 127.0.0.1:#{uri.port}\r\n\r\n")
      states(read_events(socket, number))
    end
  end
end
