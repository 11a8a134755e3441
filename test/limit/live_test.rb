# frozen_string_literal: true

require "limit/limit_helper"
require "tempfile"

# Programs in real control groups, killed without culet/limit.
class LiveTest < Minitest::Test
  include LimitHelper

  WORKLOADS = "#{ROOT}/bench/limit/workload".freeze
  GARBAGE = "#{ROOT}/workloads/garbage.rb".freeze
  KEPT = ["-rculet/limit", "-r#{__dir__}/paced"].freeze
  # Steps of the extension are listed as soon as the Ruby thread of the limit runs.
  REPORT = <<~RUBY
    require "json"
    unlisted = -> { Culet::Limit.status.then { |one| one["steps"].empty? && one["native"].values_at("trims", "collections", "tightened").sum.positive? } }
    sleep 0.05 while unlisted.call
    warn(JSON.generate(Culet::Limit.status))
  RUBY
  # Close to the limit, the program waits for its steps: on a busy machine their threads are late.
  PACE = "pace = -> { sleep 0.003; sleep 0.01 while defined?(Culet::Limit) && Culet::Limit.status.then { |one| one['used_bytes'] > 0.9 * one['limit_bytes'] } }"

  # It needs 50 MB without culet/limit once a library is loaded.
  def test_a_program_that_makes_garbage_lives_in_a_limit_that_kills_it
    with_real_group(28 * MEBIBYTE) do |folder|
      assert_equal [false, 9], ended(run_in_group(folder, "-rculet/agent", GARBAGE))
      out, err, status = run_in_group(folder, *KEPT, "-rjson", "-e", "load(ARGV[0]); #{REPORT}", GARBAGE)
      assert_predicate status, :success?, out + err
      document = JSON.parse(err.lines.last)
      assert_equal [28 * MEBIBYTE, "control group #{folder}"], document.values_at("limit_bytes", "source")
      assert_operator document["native"]["tightened"], :>, 10
      assert_includes document["steps"].map { |step| step["step"] }, "tighten"
      assert_match(/^culet: limit 28 MiB: tighten \(Ruby collects after [\d.]+ .B of malloc\), [\d.]+ MB in use/, err)
    end
  end

  # Needs 77 MiB without.
  def test_a_large_file_read_in_slices
    Tempfile.create("lines") do |file|
      file.write("#{"x" * 127}\n" * (40 * 8192))
      file.flush
      assert_lives_only_with_limit(40 * MEBIBYTE, "#{WORKLOADS}/slices.rb", file.path)
    end
  end

  # A collection comes too late where Ruby does not count the memory.
  def test_images_that_ruby_does_not_count
    assert_lives_only_with_limit(100 * MEBIBYTE, "#{WORKLOADS}/images.rb")
  end

  # Small objects need no malloc: Ruby's heap grows by 45 % in one step.
  def test_json_documents
    skip "this Ruby's heap grows by less" if GC.stat.key?(:heap_allocatable_bytes)
    assert_lives_only_with_limit(34 * MEBIBYTE, "#{WORKLOADS}/documents.rb")
  end

  # A cache that only a callback can give up.
  CACHE = <<~RUBY.freeze
    #{PACE}
    cache = []
    Culet::Limit.on(:pressure) { cache.clear } if defined?(Culet::Limit)
    400.times { cache << "x" * 500_000; pace.call }
    puts "survived"
  RUBY

  def test_a_callback_gives_a_cache_up
    with_real_group(100 * MEBIBYTE) do |folder|
      assert_equal [false, 9], ended(run_in_group(folder, "-e", CACHE))
      out, err, status = run_in_group(folder, "-rculet/limit", "-rjson", "-e", CACHE)
      assert_predicate status, :success?, err
      assert_equal "survived\n", out
      assert_match(/^culet: limit 100 MiB: callbacks \(1 of them\) freed \d/, err)
    end
  end

  # Memory that Ruby does not count, in objects that a collection frees.
  def test_memory_of_an_extension_is_freed_by_a_collection
    code = <<~RUBY
      require "fiddle"
      #{PACE}
      400.times { Fiddle::Pointer.malloc(500_000, Fiddle::RUBY_FREE)[0, 500_000] = "x" * 500_000; pace.call }
      puts "survived"
    RUBY
    with_real_group(100 * MEBIBYTE) do |folder|
      out, err, status = run_in_group(folder, "-rculet/limit", "-rjson", "-e", code)
      assert_predicate status, :success?, err
      assert_equal "survived\n", out
    end
  end

  def test_the_black_box_has_the_limit_and_the_steps
    boxes = new_folder
    with_real_group(100 * MEBIBYTE) do |folder|
      code = "#{CACHE}; Process.kill(:KILL, Process.pid)"
      _out, err, status = run_in_group(folder, "-rculet/limit", "-e", code, env: { "CULET_BLACKBOX" => boxes })
      assert_equal 9, status.termsig, err
      out, = assert_culet_success("autopsy", boxes, "--json")
      limits, steps = JSON.parse(out)["notes"].partition { |note| note["kind"] == "limit" }
      assert_equal([["control group #{folder}", 100 * MEBIBYTE]], limits.map { |note| note.values_at("text", "bytes") })
      assert_equal ["step"], steps.map { |note| note["kind"] }.uniq
      assert_includes steps.map { |note| note["text"] }, "callbacks"
      assert_operator steps.map { |note| note["bytes"] }.max, :>, 30 * MEBIBYTE
    end
  end

  def test_without_the_setting_there_is_no_black_box
    with_real_group(100 * MEBIBYTE) do |folder|
      out, err, = run_in_group(folder, "-rculet/limit", "-e", "p Culet::BlackBox.running?", env: { "CULET_BLACKBOX" => nil })
      assert_equal ["false\n", ""], [out, err]
    end
  end

  def test_far_from_the_limit_nothing_is_done
    with_real_group(512 * MEBIBYTE) do |folder|
      out, err, status = run_in_group(folder, "-rculet/limit", "-rjson", "-e", "load(ARGV[0]); #{REPORT}", GARBAGE)
      assert_predicate status, :success?, out + err
      assert_equal 1, err.lines.size, err
      document = JSON.parse(err)
      assert_equal [0, 0, 0], document["native"].values_at("trims", "collections", "tightened")
      assert_empty document["steps"]
    end
  end

  def test_forked_processes_keep_the_limit
    with_real_group(200 * MEBIBYTE) do |folder|
      code = <<~'RUBY'
        thread = -> { File.read("/proc/self/task/#{Dir.children("/proc/self/task").max_by(&:to_i)}/comm") }
        Process.wait(fork { GC.start; sleep 0.05 until Culet::Limit.status["native"]["readings"].positive?; puts JSON.generate(Culet::Limit.status); puts thread.call })
        puts JSON.generate(Culet::Limit.status)
      RUBY
      out, err, status = run_in_group(folder, "-rculet/limit", "-rjson", "-e", code)
      assert_predicate status, :success?, err
      assert_equal "", err
      child, _thread, parent = out.lines
      [child, parent].each { |text| assert_equal 200 * MEBIBYTE, JSON.parse(text)["limit_bytes"] }
      assert_operator JSON.parse(child)["native"]["readings"], :>, 0
    end
  end

  def test_a_limit_that_changes_is_noticed
    with_real_group(200 * MEBIBYTE) do |folder|
      code = <<~RUBY
        File.write("#{folder}/memory.limit_in_bytes", "150M")
        Culet::Limit.instance_variable_get(:@monitor).send(:reread)
        puts JSON.generate(Culet::Limit.status)
      RUBY
      out, err, status = run_in_group(folder, "-rculet/limit", "-rjson", "-e", code)
      assert_predicate status, :success?, err
      assert_equal 150 * MEBIBYTE, JSON.parse(out)["limit_bytes"]
      assert_equal "culet: the memory limit is 150 MiB now (control group #{folder})\n", err
    end
  end

  # Everything is in use: each step is tried, and then again after pauses that double.
  def test_what_frees_nothing_is_not_repeated
    code = <<~RUBY
      Culet::Limit.on(:pressure) { nil }
      kept = Array.new(118) { "x" * 1_000_000 }
      sleep 0.05 until (%w[trim callbacks collection] - Culet::Limit.status["steps"].map { |step| step["step"] }).empty?
      before = GC.count
      60.times { 20.times { "y" * 50_000 }; sleep 0.05 }
      puts JSON.generate({ **Culet::Limit.status, "gcs" => GC.count - before })
    RUBY
    out, err = assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet/limit", "-rjson", "-e", code,
                              env: NEUTRAL.merge("CULET_LIMIT" => "142M", "CULET_TRIM" => nil))
    document = JSON.parse(out)
    assert_operator document["gcs"], :<, 60, "for 60 MB of garbage"
    assert_operator document["used_bytes"], :>, 0.85 * document["limit_bytes"]
    native = document["native"]
    assert_includes 1..30, native["trims"] # two kinds, with pauses that double from 20 ms
    assert_operator native["collections"], :<, 8
    done = document["steps"].map { |step| step["step"] }
    %w[trim callbacks collection].each { |step| assert_includes 1..10, done.count(step), step }
    logged = err.lines.map { |line| line[/MiB: (\w+)/, 1] }
    assert_equal logged.uniq, logged, "each step once: #{err}"
    assert_match(/ trim .*; repeated less often, and not logged until it frees more$/, err)
  end

  def test_what_no_limit_can_be_read_from
    { { "CULET_LIMIT" => "much" } => /\Aculet: the limit "much" is not auto, a size such as 512M, or 1% to 100%\n\z/,
      { "CULET_LIMIT" => "off" } => /\A\z/ }.each do |env, sentence|
      out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet/limit", "-rjson", "-e", "puts 1", env: NEUTRAL.merge(env))
      assert_equal ["1\n", true], [out, status.success?]
      assert_match sentence, err
    end
  end

  def test_a_setting_and_a_part_of_the_kernels_limit
    with_real_group(200 * MEBIBYTE) do |folder|
      { "50%" => [100 * MEBIBYTE, "50 % of control group #{folder}"], "64M" => [64 * MEBIBYTE, "setting"],
        "1G" => [200 * MEBIBYTE, "control group #{folder}"] }.each do |value, expected|
        out, err, status = run_in_group(folder, "-rculet/limit", "-rjson", "-e", "puts JSON.generate(Culet::Limit.status)", env: { "CULET_LIMIT" => value })
        assert_equal ["", true], [err, status.success?]
        document = JSON.parse(out)
        assert_equal expected, document.values_at("limit_bytes", "source")
        assert_equal document["limit_bytes"], document["used_bytes"] + document["headroom_bytes"]
      end
    end
  end

  def test_the_address_space_counts_without_a_control_group
    code = "Process.setrlimit(:AS, 2 << 30); require 'culet/limit'; require 'json'; puts JSON.generate(Culet::Limit.status)"
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", code, env: NEUTRAL)
    assert_equal ["", true], [err, status.success?]
    document = JSON.parse(out)
    skip "this process has a control group with a limit" if document["source"].start_with?("control group")
    assert_equal [2 << 30, "RLIMIT_AS"], document.values_at("limit_bytes", "source")
  end

  private

  def assert_lives_only_with_limit(bytes, *words)
    with_real_group(bytes) do |folder|
      assert_equal [false, 9], ended(run_in_group(folder, "-rculet/agent", *words))
      _out, err, status = run_in_group(folder, *KEPT, *words)
      assert_predicate status, :success?, err
    end
  end

  # @return [Array] whether it succeeded, and the signal that ended it
  def ended((_out, _err, status)) = [status.success? || false, status.termsig]
end
