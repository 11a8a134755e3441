# frozen_string_literal: true

require_relative "verb_helper"
require_relative "pyroscope_server"
require "stringio"
require "zlib"

# One pprof file per interval, into a folder or to a server.
class ProfileContinuousTest < Minitest::Test
  include ProfileVerbHelper

  # Keeps 10 kB and drops as much, a hundred times a second.
  CODE = "puts :up; $stdout.flush; loop { keep(1); String.new('y' * 10_000); sleep 0.01 }"

  def test_files_of_a_folder_with_rotation
    with_profiled do |pid, folder|
      out = File.join(folder, "profiles")
      document = profile_until_third_file(pid, out)
      assert_equal({ "folder" => out, "written" => document["intervals"] }, document.slice("folder", "written"))
      assert_operator document["intervals"], :>=, 3
      names = Dir.children(out).sort
      assert_equal 2, names.size
      names.each do |name|
        assert_match(/\Aculet-profile-\d{8}T\d{6}Z\.pb\.gz\z/, name)
        text = Zlib.gunzip(File.binread(File.join(out, name)))
        %w[keep inuse_space alloc_space].each { |word| assert_includes text, word }
      end
      refute_predicate Culet::Profile::Live.new(pid), :running?
    end
  end

  def test_ctrl_c_writes_what_there_is
    with_profiled do |pid, folder|
      command = [*culet_command, "profile", pid.to_s, "--every", "1h", "--out-dir", folder, "--sample", "4k"]
      Open3.popen3(TestHelper::NEUTRAL, *command) do |_, _, err, culet|
        assert_match(/\Aculet: /, err.gets)
        sleep 1
        Process.kill(:INT, culet.pid)
        assert_equal 130, culet.value.exitstatus
      end
      assert_equal 1, Dir[File.join(folder, "culet-profile-*.pb.gz")].size
    end
  end

  def test_intervals_are_pushed
    server = PyroscopeServer.new
    with_profiled do |pid, _|
      document = profile(pid.to_s, "--every", "1s", "--for", "3s", "--push", server.address, "--app", "shop", "--sample", "4k")
      assert_equal [document["intervals"], 0], document.values_at("sent", "dropped")
      requests = Array.new(document["intervals"]) { server.requests.pop }
      requests.each_cons(2) { |one, two| assert_equal one.query["until"], two.query["from"] }
      assert_equal [["/ingest", "shop", "pprof"]], requests.map { |one| [one.path, *one.query.values_at("name", "format")] }.uniq
      assert_includes Zlib.gunzip(requests.last.body), "inuse_space"
    end
  ensure
    server&.close
  end

  def test_a_server_that_fails_is_reported_at_the_end
    with_profiled do |pid, _|
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      _, err, status = run_culet("profile", pid.to_s, "--every", "1s", "--for", "2s", "--push", "http://127.0.0.1:#{port}", env: TestHelper::NEUTRAL)
      assert_equal 1, status.exitstatus
      assert_match(/^culet: (\d+) of \1 profiles were not accepted: cannot push to http:.*refused(?!.*trying again)/i, err)
      refute_predicate Culet::Profile::Live.new(pid), :running?
    end
  end

  def test_the_end_of_the_process_is_the_end
    with_profiled do |pid, folder|
      ended = Thread.new do
        sleep 0.05 until Dir[File.join(folder, "culet-profile-*")].any?
        Process.kill(:KILL, pid)
      end
      document = profile(pid.to_s, "--every", "1s", "--for", "#{TestHelper::PATIENCE_SECONDS}s", "--out-dir", folder)
      assert_operator document["written"], :>=, 1
      ended.join
    end
  end

  # Until there are three files. The worker leaves by exit!, so the interval of its end has what it held.
  def test_a_command_until_its_end
    folder = new_folder
    out = File.join(folder, "profiles")
    code = <<~RUBY
      def leave = exit!(0)
      files = -> { Dir[#{out.dump} + "/*.gz"].size }
      keep(100)
      sleep 0.01 until files.call >= 1
      Process.wait(fork { def hold(count) = keep(count); hold(400); leave })
      sleep 0.01 until files.call >= 3
      puts :said
      exit 7
    RUBY
    command = ["profile", "--json", "--every", "1s", "--out-dir", out, "--sample", "4k", "--", RbConfig.ruby, program(folder, code)]
    text, err, status = run_culet(*command, env: TestHelper::NEUTRAL)
    assert_equal 7, status.exitstatus, err
    assert_match(/\Aculet: profiling the command every 1 s; Ctrl-C ends it\nsaid\nculet: the command ended with status 7\n\z/, err)
    document = JSON.parse(text)
    assert_operator document["intervals"], :>=, 3
    assert_equal document["intervals"], document["written"]
    files = Dir[File.join(out, "*")].map { |path| Zlib.gunzip(File.binread(path)) }
    assert(files.any? { |content| content.include?("keep") })
    assert_equal 1, files.count { |content| content.include?("hold") }
  end

  def test_a_command_that_ends_at_once
    folder = new_folder
    document = profile("--every", "1h", "--out-dir", folder, "--sample", "4k", "--", RbConfig.ruby, program(folder, "keep(100)"))
    assert_equal({ "intervals" => 1, "folder" => folder, "written" => 1 }, document)
    assert_includes Zlib.gunzip(File.binread(Dir[File.join(folder, "*.gz")].first)), "keep"
    _, err, status = run_culet("profile", "--every", "1h", "--out-dir", folder, "--", "no-such-program", env: TestHelper::NEUTRAL)
    assert_equal [127, "culet: cannot run no-such-program: no such program\n"], [status.exitstatus, err]
  end

  private

  # Interrupted, because a busy machine writes fewer files in a given time.
  #
  # @return [Hash] the document
  def profile_until_third_file(pid, folder)
    command = [*culet_command, "profile", pid.to_s, "--json", "--every", "1s", "--keep", "2", "--out-dir", folder, "--sample", "4k"]
    Open3.popen3(TestHelper::NEUTRAL, *command) do |_, out, err, culet|
      seen = []
      sleep 0.02 until (seen |= Dir[File.join(folder, "*.gz")]).size >= 3 || !culet.alive?
      Process.kill(:INT, culet.pid)
      document = JSON.parse(out.read)
      assert_equal 130, culet.value.exitstatus, err.read
      document
    end
  end

  def with_profiled
    Dir.mktmpdir do |folder|
      with_program(RbConfig.ruby, "-W1", "-I#{LIBRARY}", "-rculet/profile", program(folder, CODE), env: on_culet) { |pid| yield pid, folder }
    end
  end
end
