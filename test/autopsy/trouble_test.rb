# frozen_string_literal: true

require_relative "box_helper"

# Where no black box can be kept, or its file is lost: a sentence, and the program runs on.
class AutopsyTroubleTest < Minitest::Test
  include TestHelper
  include BoxHelper

  def assert_runs_on(sentence, code = "puts 'done'", env: {})
    out, err, status = run_boxed(code, env: env)
    assert_equal ["done\n", true], [out, status.success?], err
    assert_match(/\Aculet: .*#{sentence}.*\n\z/, err)
  end

  def test_a_folder_that_is_a_file
    path = File.join(@folder, "file")
    File.write(path, "")
    assert_runs_on("no black box can be kept in #{path}", env: { "CULET_BLACKBOX" => path })
    assert_equal "", File.read(path)
  end

  def test_a_folder_whose_parent_is_missing
    assert_runs_on("no such file or directory", env: { "CULET_BLACKBOX" => File.join(@folder, "a/b") })
  end

  def test_a_home_of_nobody
    assert_runs_on("CULET_BLACKBOX: .*there is no black box", env: { "CULET_BLACKBOX" => "~no-such-user-here/x" })
  end

  def test_a_program_whose_folder_was_removed
    gone = new_folder
    out, err, = run_program("sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", gone, RbConfig.ruby, "-I#{LIBRARY}", "-rculet/auto", "-e", "puts 'done'",
                            env: { "CULET_BLACKBOX" => "box" })
    assert_equal "done\n", out
    assert_match(/\Aculet: CULET_BLACKBOX: .*; there is no black box\n\z/, err)
  end

  # In a folder of all users, others may have put it there.
  def test_a_file_whose_name_is_no_text
    File.write(File.join(@folder, "\xFF"), "")
    out, err, = run_boxed("puts 'done'")
    assert_equal ["done\n", ""], [out, err]
    assert_sentence(/has no black box/, "autopsy", @folder)
  end

  def test_off
    ["", "0"].each do |value|
      out, err, = run_boxed("puts defined?(Culet::BlackBox) && Culet::BlackBox.running?", env: { "CULET_BLACKBOX" => value })
      assert_equal ["false\n", ""], [out, err]
    end
  end

  def test_a_folder_of_the_program_is_found_after_it_changes_its_own
    out, err, = run_boxed("Dir.chdir('/'); Process.wait(fork { puts Culet::BlackBox.path })", env: { "CULET_BLACKBOX" => "box" },
                                                                                            chdir: @folder)
    assert_equal ["#{File.realpath(@folder)}/box", ""], [File.dirname(out.chomp), err]
  end

  def test_a_full_disk
    with_disk("128k") do |disk|
      assert_runs_on("no space left on device.*; the program runs without it", env: { "CULET_BLACKBOX" => disk })
      assert_empty Dir.children(disk)
    end
  end

  # Eight boxes fit. Those of killed processes give way, the oldest first; those of living ones, and other files, stay.
  def test_boxes_of_ended_processes_give_way_on_a_full_disk
    with_disk("2m") do |disk|
      env = { "CULET_BLACKBOX" => disk }
      File.write(File.join(disk, "other"), "x" * 100_000)
      killed = Array.new(6) { killed_box(disk) }
      # The file system's clock may be too coarse to tell them apart.
      killed.each_with_index { |file, hours| File.utime(Time.now - (3600 * hours), Time.now - (3600 * hours), file) }
      with_program(RbConfig.ruby, "-I#{LIBRARY}", "-rculet/auto", "-e", WAITING, env: env, err: File::NULL) do |pid|
        living = Dir.glob("#{disk}/culet-#{pid}-*")
        out, err, status = run_boxed("puts Culet::BlackBox.running?; Process.wait(fork { puts Culet::BlackBox.running? })", env: env)
        assert_equal ["true\ntrue\n", true], [out, status.success?], err
        refute_match(/no space left/, err)
        # Of seven places, one is the living program's and two were those of the two processes.
        assert_equal killed.first(4).sort, (Dir.glob("#{disk}/*.blackbox") - living).sort
        assert_equal 1, living.size
        # A disk that others have filled.
        Dir.glob("#{disk}/*.blackbox").each { |file| File.unlink(file) unless living.include?(file) }
        File.write(File.join(disk, "more"), "x" * ((2 << 20) - (256 << 10) - 200_000))
        assert_runs_on("no space left on device", env: env)
        assert_equal living, Dir.glob("#{disk}/*.blackbox")
      end
    end
  end

  # Its pages are gone: each access would be a SIGBUS.
  def test_a_file_that_is_truncated
    code = <<~RUBY
      require "culet/profile"
      reader, writer = IO.pipe
      errors = $stderr.dup
      $stderr.reopen(writer)
      File.truncate(Culet::BlackBox.path, 0)
      1000.times { |number| Culet::Profile.label(number: number) { "x" } }
      Culet::BlackBox.step("trim", freed_bytes: 1)
      errors.write(reader.gets)
      $stderr.reopen(errors)
      Culet::Profile.label(after: 1) { "x" }
      Process.wait(fork { exit!(Culet::BlackBox.running? ? 0 : 1) })
      puts "done" if $?.success?
    RUBY
    assert_runs_on("the file of the black box was truncated, or its disk failed; the program runs on without a black box", code)
  end

  # A bus error of the program itself goes to Ruby as before.
  def test_another_bus_error
    program = "Process.kill(:BUS, $$); sleep 1"
    alone = run_program(RbConfig.ruby, "-e", program).last
    assert_predicate alone, :signaled?
    _, err, status = run_boxed(program)
    assert_equal alone.termsig, status.termsig
    assert_includes err, "Bus Error"
  end

  def test_a_file_that_is_removed
    out, err, = run_boxed("File.unlink(Culet::BlackBox.path); sleep 1.1; puts 'done'")
    assert_equal ["done\n", ""], [out, err]
  end

  # 128 run at most; those beyond are not in the file.
  def test_more_requests_at_once_than_there_is_room
    code = <<~RUBY
      require "culet/profile"
      threads = Array.new(200) { |number| Thread.new { Culet::Profile.label(job: "J\#{number}") { sleep } } }
      Thread.pass until threads.all? { |thread| thread.status == "sleep" }
      #{BoxHelper.recorded("readings")}
      Process.kill(:KILL, $$)
      sleep
    RUBY
    run_boxed(code)
    assert_equal 128, findings.running.size
    assert_equal 128, box.readings.last.running
  end

  def test_limits_and_steps
    run_boxed(<<~RUBY)
      Culet::BlackBox.limit(536_870_912, "memory.max")
      70.times { |number| Culet::BlackBox.step("trim \#{number}", freed_bytes: number) }
      Culet::BlackBox.step("r\\u00e9start \\xff \\n" + "x" * 300)
      Process.kill(:KILL, $$)
      sleep
    RUBY
    notes = box.notes
    assert_equal 64, notes.size
    assert_equal ["step", "trim 69", 69], notes[-2].to_a.drop(1)
    assert_match(/\Ar\u00e9start \?/, notes.last.text)
    assert_nil notes.last.bytes
  end

  def test_a_daemon
    out, err, = run_boxed(<<~RUBY)
      reader, writer = IO.pipe
      pid = fork do
        Process.daemon(true, true)
        writer.puts Culet::BlackBox.running?, Culet::BlackBox.path.include?("culet-\#{Process.pid}-")
      end
      writer.close
      Process.wait(pid)
      puts reader.read
    RUBY
    assert_equal ["true\ntrue\n", ""], [out, err]
    assert_empty boxes
  end

  private

  # @yieldparam disk [String] a folder on a volume of its own
  def with_disk(size)
    skip "mounting a small disk takes root" unless Process.euid.zero?
    disk = File.join(@folder, "disk")
    Dir.mkdir(disk)
    skip "a disk cannot be mounted here" unless system("mount", "-t", "tmpfs", "-o", "size=#{size}", "none", disk, err: File::NULL)
    begin
      yield disk
    ensure
      system("umount", disk, exception: true)
    end
  end

  # @return [String] the file of a process that was killed
  def killed_box(disk)
    before = Dir.glob("#{disk}/*.blackbox")
    run_boxed("Process.kill(:KILL, $$); sleep", env: { "CULET_BLACKBOX" => disk })
    (Dir.glob("#{disk}/*.blackbox") - before).first
  end
end
