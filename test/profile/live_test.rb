# frozen_string_literal: true

require_relative "verb_helper"
require "servers/server_helper"

# Running processes, asked by their agents.
class ProfileLiveTest < Minitest::Test
  include ProfileVerbHelper

  FAKE = File.expand_path("../agent/fake_agent.rb", __dir__)
  # Keeps strings whenever it gets a line.
  ON_REQUEST = "puts :up; $stdout.flush; while gets; keep(1_000); GC.start; puts :kept; $stdout.flush; end"
  # Keeps strings again and again, at most 50 MB.
  UNDER_LOAD = "puts :up; $stdout.flush; (1..).each { |i| keep(1); KEPT.shift if i > 5_000; GC.start if i % 100 == 0; sleep 0.002 }"

  def test_a_profile_that_is_on_is_reported_at_once
    with_profiled(ON_REQUEST, { "CULET_PROFILE" => SAMPLE.to_s }) do |pid, ask|
      ask.call
      assert_kept(profile(pid.to_s, "--by", "line"))
      assert_empty @err
      ask.call
      assert_kept(profile(pid.to_s, "--by", "line"), bytes: 2 * KEPT_BYTES)
    end
  end

  # The boot is no growth, and `--collect` runs the collections that growth has to survive.
  def test_growth_begins_after_the_boot_and_collections_run_on_demand
    ["booted", "label(request: 1) {}"].each do |call|
      code = "keep(1_000); puts :up; $stdout.flush; gets; Culet::Profile.#{call}; def leak = 500.times { KEPT << ('y' * 10_000) }; leak; puts :kept; $stdout.flush; gets"
      with_profiled(code, { "CULET_PROFILE" => SAMPLE.to_s }) do |pid, ask|
        ask.call
        none = profile(pid.to_s, "--view", "growth", "--by", "method")
        assert_equal 0, none["total_bytes"]
        out, = run_culet("profile", pid.to_s, "--view", "growth")
        assert_match(/there (?:were none|was 1|were 2) since the start of the profile\. `culet profile PID --view growth --collect` runs three/, out.tr("\n", " "))
        grown = profile(pid.to_s, "--view", "growth", "--by", "method", "--collect")
        assert_equal "Object#leak", rows(grown).first["name"], rows(grown).first(5)
        assert_operator grown["total_bytes"], :<, 8_000_000
        assert_operator profile(pid.to_s)["total_bytes"], :>, 13_000_000
      end
    end
  end

  # With --for, growth begins then, also where the profile is on since the start.
  def test_growth_of_a_time_begins_with_it
    with_profiled("keep(2_000); #{ON_REQUEST}", { "CULET_PROFILE" => SAMPLE.to_s }) do |pid, ask|
      grown = profile_until(pid, "--view", "growth", "--collect", &ask)
      assert_operator grown["total_bytes"], :<, 15_000_000
      assert_operator grown["total_bytes"], :>, 0
    end
  end

  # Blocks of 1 MiB that are hardly used: in newer Rubies, which come without fiddle, the stacks of threads are.
  def test_what_is_resident_of_large_blocks_counts
    code = ["FIDDLE = begin; require 'fiddle'; rescue LoadError; false; end; puts :up; $stdout.flush; gets",
            "T = Array.new(40) { FIDDLE ? Fiddle.malloc(1 << 20) : Thread.new { sleep } }", "KEPT << ('z' * 9_000_000)",
            "puts :kept; $stdout.flush; gets"].join("\n")
    with_profiled(code, { "CULET_PROFILE" => SAMPLE.to_s }) do |pid, ask|
      ask.call
      of = ->(view) { rows(profile(pid.to_s, "--by", "line", "--view", view)).to_h { |row| [row["name"][/app\.rb:(\d+)\z/, 1].to_i, row["bytes"]] } }
      assert_operator of.call("live").fetch(6, 0), :<, 8_000_000
      assert_operator of.call("live").fetch(7), :>, 8_900_000
      assert_operator of.call("allocated").fetch(6), :>, 20_000_000
      out, = run_culet("profile", pid.to_s, "--top", "1")
      assert_match(/note: \d\d\.\d MB of blocks of 131 kB and more was never written/, out.tr("\n", " "))
    end
  end

  # With so many samples they show: its thread's stack, its strings and objects.
  def test_what_culet_itself_holds_is_apart
    with_profiled(ON_REQUEST, { "CULET_PROFILE" => "256" }) do |pid, ask|
      ask.call
      assert_equal "culet itself", rows(profile(pid.to_s, "--by", "line")).last["name"]
      out, = run_culet("profile", pid.to_s, "--top", "1")
      assert_match(/^culet itself: [\d.]+ [kM]?B/, out)
    end
  end

  def test_a_program_that_has_not_loaded_the_profile
    { "agent" => true, "profile" => false }.each do |part, missing|
      with_profiled(ON_REQUEST, { "CULET_PROFILE" => SAMPLE.to_s }, part: part) do |pid, ask|
        ask.call
        out, = assert_culet_success("profile", pid.to_s)
        note = out.split.join(" ").match?(/note: [\d.]+ % has C frames alone, .*RUBYOPT=-r\$\(culet lib profile\)\./)
        assert_equal missing, note, out
      end
    end
  end

  def test_a_profile_that_is_off_is_started_and_stopped
    with_profiled(UNDER_LOAD) do |pid|
      # On a busy machine it may keep nothing meanwhile.
      document = assert_settles("strings are kept") do
        profile(pid.to_s, "--for", "2s", "--by", "line", "--sample", "4k").then { |found| found if rows(found).any? }
      end
      assert_equal 4096, document["sample_bytes"]
      assert_equal "app.rb:#{KEEPING_LINE}", File.basename(rows(document).first["name"])
      assert_match(/\Aculet: profiling process #{pid} for 2 s; Ctrl-C reports now\n\z/, @err)
      refute_predicate Culet::Profile::Live.new(pid), :running?
    end
  end

  def test_ctrl_c_ends_the_wait
    with_profiled(ON_REQUEST) do |pid, ask|
      document = profile_until(pid, "--by", "line", &ask)
      assert_equal "app.rb:#{KEEPING_LINE}", File.basename(rows(document).first["name"])
      refute_predicate Culet::Profile::Live.new(pid), :running?
    end
  end

  def test_what_is_missing_is_said_in_a_sentence
    script = "puts :up; $stdout.flush; sleep"
    with_program(RbConfig.ruby, "-e", script, env: TestHelper::NEUTRAL) do |pid|
      assert_refused(/process #{pid} has no agent and does not run on culet's allocator; start it with RUBYOPT=-r\$\(culet lib profile\) culet run -- COMMAND/,
                     pid.to_s)
      stop(pid)
      assert_refused(/process #{pid} has no agent|is stopped/, pid.to_s)
    end
    with_program(RbConfig.ruby, "-e", script, env: on_culet) do |pid|
      assert_refused(/process #{pid} has no agent; start it with RUBYOPT=-r\$\(culet lib profile\)$/, pid.to_s)
    end
    with_program("sh", "-c", "echo up; exec sleep 1000", env: TestHelper::NEUTRAL) do |pid|
      sleep 0.01 until File.read("/proc/#{pid}/comm") == "sleep\n"
      assert_refused(/process #{pid} is not a Ruby program and has no agent; start it with `culet profile -- COMMAND`/, pid.to_s)
    end
    assert_refused(/there is no process 99999999/, "99999999")
    assert_refused(/kernel thread/, "2")
  end

  def test_another_allocator_leaves_the_objects
    with_program(RbConfig.ruby, "-I#{LIBRARY}", "-rculet/profile", "-e", "puts :up; $stdout.flush; sleep", env: TestHelper::NEUTRAL) do |pid|
      document = profile(pid.to_s, "--for", "1s")
      assert_equal "live", document["view"]
      assert_match(/process #{pid} does not run on culet's allocator, so its profile has Ruby objects alone; start it with `culet run -- COMMAND`/, @err)
    end
  end

  def test_a_stopped_process
    with_profiled(ON_REQUEST) do |pid|
      stop(pid)
      assert_refused(/process #{pid} is stopped; continue it first: kill -CONT #{pid}/, pid.to_s)
    end
  end

  def test_another_user_s_process
    skip "only root can become another user" unless Process.uid.zero?
    with_profiled(ON_REQUEST) do |pid|
      code = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); exec(*ARGV)"
      home = { "HOME" => "/", "XDG_DATA_HOME" => nil } # RubyGems warns of folders that it may not read
      _, err, status = run_program(RbConfig.ruby, "-e", code, *culet_command, "profile", pid.to_s, env: TestHelper::NEUTRAL.merge(home))
      assert_equal 1, status.exitstatus
      assert_match(/^culet: process #{pid} belongs to (?:root|another user|the user with number 0); run culet as that user or as root\n\z/, err)
    end
  end

  # The others are reported.
  def test_a_process_that_ends_meanwhile
    with_profiled(ON_REQUEST, { "CULET_PROFILE" => SAMPLE.to_s }) do |pid, ask|
      ask.call
      with_program(RbConfig.ruby, FAKE, "on", "-", env: TestHelper::NEUTRAL) do |other|
        assert_kept(profile(pid.to_s, other.to_s, "--by", "line"))
        assert_match(/^culet: process #{other} (?:ended before it answered|has ended)$/, @err)
      end
      with_program(RbConfig.ruby, FAKE, "off", "-", env: TestHelper::NEUTRAL) do |other|
        _, err, status = run_culet("profile", other.to_s, "--for", "0.1s", env: TestHelper::NEUTRAL)
        assert_equal 1, status.exitstatus
        assert_match(/^culet: no process is left whose profile can be read$/, err)
      end
    end
  end

  def test_answers_that_are_damaged
    folder = new_folder
    stream = File.join(folder, "stream")
    ["", "culet-profile 99\nE 1\n", "\xff\x00" * 1000, "culet-profile 1\nE 7\n"].each do |text|
      File.binwrite(stream, text)
      with_program(RbConfig.ruby, FAKE, "on", stream, env: on_culet) { |pid| assert_refused(/process #{pid} /, pid.to_s) }
    end
  end

  private

  # Interrupts `culet profile` after the block.
  #
  # @return [Hash] the document
  def profile_until(pid, *words)
    Open3.popen3(TestHelper::NEUTRAL, *culet_command, "profile", pid.to_s, "--for", "1h", "--json", *words) do |_, out, err, culet|
      assert_match(/profiling process/, err.gets)
      yield
      Process.kill(:INT, culet.pid)
      document = JSON.parse(out.read)
      assert_equal 130, culet.value.exitstatus
      return document
    end
  end

  # Yields the process, and what makes it keep strings.
  def with_profiled(code, env = {}, part: "profile")
    Dir.mktmpdir do |folder|
      command = [RbConfig.ruby, "-W1", "-I#{LIBRARY}", "-rculet/#{part}", program(folder, code)]
      Open3.popen2(on_culet.merge(env), *command, pgroup: true) do |input, output, process|
        assert_equal "up\n", output.gets
        ask = lambda do
          input.puts
          output.gets
        end
        yield process.pid, ask
      ensure
        end_group(process.pid)
      end
    end
  end
end

# A Puma with workers.
class ProfilePumaTest < Minitest::Test
  include ProfileVerbHelper
  include ServerHelper

  def test_the_workers_are_merged
    assert_merged("RUBYOPT" => "-r#{LIBRARY}/culet/profile.rb")
  end

  def test_the_plugin_loads_the_profile
    assert_merged({})
  end

  private

  def assert_merged(options)
    env = on_culet.compact.merge(options, "WORKERS" => "2", "PRELOAD" => "1", "CULET_PROFILE" => SAMPLE.to_s)
    with_server("puma", "-C", File.expand_path("../servers/puma/puma.rb", __dir__), ServerHelper::APPLICATION, env: env) do |server|
      assert_settles("both workers keep garbage") do
        at_once(server, "/garbage", 4)
        pids = workers(server, 2).keys
        document = profile(server.pid.to_s, *pids.map(&:to_s), "--by", "line")
        row = rows(document).find { |one| one["name"].match?(/application\.ru:\d+\z/) }
        # One string in 250 of 50,000 stays: 200 kB for each worker.
        row && row["high_bytes"] > 400_000 && document["processes"].map { |one| one["pid"] }.sort == [server.pid, *pids].sort
      end
    end
  end
end
