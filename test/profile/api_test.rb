# frozen_string_literal: true

require "json"
require "profile/profile_helper"

# Culet::Profile, and the settings in the environment.
class ProfileApiTest < Minitest::Test
  include ProfileHelper

  def test_start_stop_and_write
    out = inside(<<~RUBY)
      p Culet::Profile.running?
      Culet::Profile.start(sample_bytes: 1 << 20)
      p Culet::Profile.running?, Culet::Profile.sample_bytes
      $first = "x" * 50_001
      Culet::Profile.start
      p Culet::Profile.sample_bytes
      Culet::Profile.stop
      p Culet::Profile.running?
      $second = "x" * 60_001
      p Culet::Profile.write("stream"), File.stat("stream").mode.to_s(8)
      text = File.read("stream")
      p text.include?(" 50002 "), text.include?(" 60002 ")
      Culet::Profile.start
      Culet::Profile.write("stream")
      p File.read("stream").include?(" 50002 ")
    RUBY
    assert_equal "false\ntrue\n1048576\n524288\nfalse\n\"stream\"\n\"100600\"\ntrue\nfalse\nfalse\n", out
  end

  def test_what_is_invalid
    out = inside(<<~RUBY)
      def report = yield.then { |value| p value } rescue puts("\#{$!.class}: \#{$!.message}")
      report { Culet::Profile.write("stream") }
      p File.exist?("stream")
      [0, -1, 1.5, "512k", nil, (1 << 40) + 1].each { |bytes| report { Culet::Profile.start(sample_bytes: bytes) } }
      Culet::Profile.start
      report { Culet::Profile.write("missing/stream") }
      report { Culet::Profile.write(".") }
      p Dir.children(".")
    RUBY
    lines = out.lines(chomp: true)
    assert_equal ["RuntimeError: the memory profile was not started", "false"], lines.shift(2)
    refused = [0, -1, 1.5, "512k", nil, (1 << 40) + 1].map { |bytes| "ArgumentError: sample_bytes: #{bytes.inspect} is not a number of bytes from 1 to #{1 << 40}" }
    assert_equal refused, lines.shift(6)
    assert_equal ["Culet::Error: cannot write missing/stream: no such file or directory", "Culet::Error: cannot write .: is a directory",
                  "[\"program.rb\"]"], lines
  end

  { "1" => 524_288, "64k" => 65_536, "2M" => 2 << 20, "1000" => 1000, "0" => nil, "" => nil }.each do |text, bytes|
    define_method("test_the_setting_#{text.empty? ? "nothing" : text}") do
      out = inside("p Culet::Profile.running? && Culet::Profile.sample_bytes", env: { "CULET_PROFILE" => text })
      assert_equal bytes ? bytes.to_s : "false", out.chomp
    end
  end

  def test_an_invalid_setting_is_one_warning
    in_folder("p Culet::Profile.running?") do |_, program|
      ["many", "1.5m", "4mb", "-1", "9999999999999g", "1k\n"].each do |text|
        out, err, status = run_program(*RUBY, program, env: sampled("CULET_PROFILE" => text))
        next assert_equal(["true\n", ""], [out, err]) if text == "1k\n"

        assert_equal ["false\n", true], [out, status.success?]
        assert_equal "culet: CULET_PROFILE: '#{text}' is not a size such as 512k or 1m; the memory profile is off\n", err
      end
    end
  end

  def test_a_start_without_memory_can_be_repeated
    out = inside(<<~RUBY)
      size = Integer(File.read("/proc/self/status")[/^VmSize:\\s+(\\d+)/, 1]) << 10
      soft, hard = Process.getrlimit(:AS)
      [4, 12, 14, 32].each do |mib|
        Process.setrlimit(:AS, size + (mib << 20), hard)
        Culet::Profile.start(sample_bytes: 1)
        exit!(1)
      rescue NoMemoryError
        exit!(2) if Culet::Profile.running?
      end
      Process.setrlimit(:AS, soft, hard)
      Culet::Profile.start(sample_bytes: 1)
      $kept = "x" * 60_001
      print Culet::Profile.send(:stream)
    RUBY
    assert_equal ["<cfunc>:0:String#*", "program.rb:12:<main>"], Stream.new(out).ruby(60_002)
  end

  def test_an_exception_does_not_lose_the_profile
    { "raise 'failed'" => 1, "exit 3" => 3, "abort 'end'" => 1, "Process.kill(:TERM, Process.pid); sleep" => nil }.each do |last, status|
      in_folder("$kept = 'x' * 50_001\n#{last}") do |folder, program|
        _, _, ended = run_program(*RUBY, program, env: sampled("CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => "#{folder}/%p.stream"))
        assert_equal [status, "program.rb:1:<main>"], [ended.exitstatus, Stream.new(File.read("#{folder}/#{ended.pid}.stream")).ruby(50_002)[1]]
      end
    end
  end

  def test_a_file_that_cannot_be_written_is_one_warning
    in_folder("puts 1") do |folder, program|
      out, err, status = run_program(*RUBY, program, env: sampled("CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => "#{folder}/missing/x"))
      assert_equal ["1\n", true], [out, status.success?]
      assert_equal "culet: the memory profile cannot be written: cannot write #{folder}/missing/x: no such file or directory\n", err
    end
  end

  def test_a_report
    out = inside(<<~RUBY)
      require "json"
      Culet::Profile.start
      def keep = ($kept = "x" * 50_001)
      keep
      puts JSON.generate(Culet::Profile.report)
      puts Culet::Profile.report(view: :growth)["view"]
      Culet::Profile.report(view: :many) rescue puts("\#{$!.class}: \#{$!.message}")
    RUBY
    report, *rest = out.lines(chomp: true)
    site = JSON.parse(report)["sites"].find { |one| one["bytes"] == 50_002 }
    frame = site["frames"].find { |one| one["method"] == "Object#keep" }
    assert_equal ["program.rb", 3], [File.basename(frame["file"]), frame["line"]]
    assert_equal ["growth", "ArgumentError: view: :many is not one of live, allocated, peak, growth"], rest
  end

  # Trap handlers cannot load files.
  def test_in_a_trap_handler
    out = inside(<<~RUBY)
      require "culet/report"
      Culet::Profile.start
      trap("USR1") { puts Culet::Profile.write("stream"), Culet::Profile.report["view"] }
      Process.kill("USR1", Process.pid)
    RUBY
    assert_equal "stream\nlive\n", out
  end

  # The extension's own copy of the profile: of Ruby's objects alone.
  def test_without_an_allocator_that_samples
    out = inside("Culet::Profile.start; puts Culet::Profile.send(:stream).lines.first", env: { "LD_PRELOAD" => nil })
    assert_equal "culet-profile 1\n", out
  end

  def test_on_culets_allocator
    out = inside(<<~RUBY, env: { "LD_PRELOAD" => "#{ROOT}/allocator/build/libculet.so", "CULET_PROFILE" => "1000" })
      def leak = ($kept = Array.new(100) { |index| "x" * (10_000 + index) })
      leak
      Culet::Profile.write("stream")
      puts File.read("stream").match?(/^F \\d+ 1 .*program.rb\tObject#leak$/)
    RUBY
    assert_equal "true\n", out
  end
end
