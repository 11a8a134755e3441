# frozen_string_literal: true

require "agent/agent_helper"

# What a process tells of itself, asked from inside.
class AgentDetailTest < Minitest::Test
  include AgentHelper

  def test_loading_costs_the_native_part_and_the_standard_library_only
    script = "before = $LOADED_FEATURES.dup; require 'culet/agent'; puts $LOADED_FEATURES - before"
    out, err, status = run_program(RbConfig.ruby, "-w", "--disable-gems", "-I#{TestHelper::ROOT}/lib", "-e", script, env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    names = out.lines(chomp: true).map { |path| path.delete_prefix("#{TestHelper::ROOT}/lib/") }
    assert_equal %w[culet.rb culet/agent.rb culet/culet.so culet/errors.rb culet/native.rb culet/rails_hook.rb culet/version.rb], names.sort
  end

  def test_it_listens_without_a_ruby_thread_and_leaves_all_named_signals_alone
    out = inside(<<~RUBY)
      untouched = (Signal.list.keys - %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM]).all? do |name|
        [nil, "DEFAULT", "SYSTEM_DEFAULT", "IGNORE"].include?(trap(name, "DEFAULT"))
      end
      puts JSON.generate([Culet::Agent.listening?, Culet::Agent.problem, Thread.list.size, untouched, Culet::Agent.start])
    RUBY
    assert_equal [true, nil, 1, true, true], JSON.parse(out)
  end

  def test_without_the_native_part_it_loads_and_says_why_it_does_not_listen
    in_directory do |directory|
      FileUtils.cp_r("#{TestHelper::ROOT}/lib", directory)
      FileUtils.rm_f(Dir["#{directory}/lib/culet/**/culet.so"])
      script = "require 'culet/agent'; p Culet::Agent.listening?; puts Culet::Agent.problem"
      out, err, status = run_program(RbConfig.ruby, "-w", "-I#{directory}/lib", "-e", script, env: TestHelper::NEUTRAL)
      assert_equal [true, ""], [status.success?, err]
      assert_equal "false", out.lines.first.chomp
      assert_match(/culet\.so (was|is) not built: /, out.lines.last)
    end
  end

  def test_strings_are_counted_to_the_byte
    before, after = JSON.parse(inside(<<~RUBY))
      #{DETAIL}
      kept = Array.new(10_000)
      GC.start
      before = types["T_STRING"]
      10_000.times { |i| kept[i] = "x" * 1000 }
      GC.start
      puts JSON.generate([before, types["T_STRING"]])
    RUBY
    assert_in_delta 10_000, after["count"] - before["count"], 200
    # Ruby reserves one byte more for each, the final zero; the few strings of the count itself come on top.
    assert_in_delta 10_000 * 1001, after["malloc_bytes"] - before["malloc_bytes"], 20_000
  end

  def test_all_types_together_are_what_objectspace_counts
    told, counted = JSON.parse(inside(<<~RUBY))
      #{DETAIL}
      require "objspace"
      GC.start
      GC.disable
      counted = ObjectSpace.count_objects_size
      told = types
      puts JSON.generate([told, counted])
    RUBY
    %w[T_STRING T_ARRAY T_HASH T_CLASS T_REGEXP T_FILE].each do |name|
      whole = told[name].values_at("slot_bytes", "malloc_bytes", "elsewhere_bytes").sum
      assert_in_delta counted[name], whole, counted[name] * 0.1, name
    end
  end

  def test_shared_buffers_count_once
    before, after = JSON.parse(inside(<<~RUBY))
      #{DETAIL}
      original = ("x" * 1_000_000).freeze
      GC.start
      before = types["T_STRING"]
      copies = Array.new(500) { original.dup }
      after = types["T_STRING"]
      puts JSON.generate([before, after]) if copies.size == 500
    RUBY
    assert_in_delta 700, after["shared"] - before["shared"], 200 # some of the count's own come on top
    assert_operator after["malloc_bytes"] - before["malloc_bytes"], :<, 1_100_000
  end

  def test_extensions_objects_are_told_by_name_and_internals_by_kind
    told = JSON.parse(inside(<<~RUBY))
      #{DETAIL}
      kept = Array.new(1000) { Mutex.new }
      puts JSON.generate(detail["objects"]) if kept.any?
    RUBY
    mutexes = told["data"].find { |one| one["name"] == "mutex" }
    assert_operator mutexes["count"], :>=, 1000
    assert_operator mutexes["malloc_bytes"], :>=, 1000 * 8
    assert_operator told["data"].size, :<=, 21
    %w[data internals].zip(%w[T_DATA T_IMEMO]).each do |list, type|
      whole = told["types"].find { |one| one["name"] == type }
      %w[count slot_bytes malloc_bytes untold].each { |key| assert_equal whole[key], told[list].sum { |one| one[key] }, "#{list} #{key}" }
    end
    assert_operator told["internals"].find { |one| one["name"] == "iseq" }["malloc_bytes"], :>, 100_000
  end

  # A thread counts its VM stack, which is on its native one.
  def test_threads_stacks_are_not_malloc_s
    before, after = JSON.parse(inside(<<~RUBY))
      #{DETAIL}
      before = types["T_DATA"]
      threads = Array.new(8) { Thread.new { sleep } }
      Thread.pass until threads.all?(&:stop?)
      puts JSON.generate([before, types["T_DATA"]])
    RUBY
    assert_operator after["malloc_bytes"] - before["malloc_bytes"], :<, 500_000
    assert_equal 8 * RubyVM::DEFAULT_PARAMS[:thread_vm_stack_size], after["elsewhere_bytes"] - before["elsewhere_bytes"]
  end

  def test_sums_fit
    told = JSON.parse(inside("#{DETAIL}; puts JSON.generate(detail['objects'])"))
    %w[count slot_bytes malloc_bytes elsewhere_bytes].each { |key| assert_equal told[key], told["types"].sum { |one| one[key] }, key }
    assert told["complete"]
    assert_operator told["seconds"], :>, 0
  end

  def test_it_can_leave_extensions_alone
    data = JSON.parse(inside("#{DETAIL}; puts JSON.generate(types(data: false)['T_DATA'])"))
    assert_equal [0, data["count"]], data.values_at("malloc_bytes", "untold")
  end

  def test_the_limit_ends_the_count_and_gc_is_as_before
    objects, enabled, disabled = JSON.parse(inside(<<~RUBY))
      #{DETAIL}
      objects = detail(limit: 0.0)["objects"]
      enabled = GC.enable
      GC.disable
      detail
      puts JSON.generate([objects, enabled, GC.enable])
    RUBY
    refute objects["complete"]
    assert_equal 0, objects["count"]
    assert_equal [false, true], [enabled, disabled], "whether GC was off"
  end

  def test_while_several_ractors_run_it_does_not_count
    out = inside(<<~RUBY, "-W:no-experimental")
      #{DETAIL}
      ractor = Ractor.new { Ractor.receive }
      busy = detail["objects"]
      ractor.send(:end)
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      puts JSON.generate(busy)
    RUBY
    told = JSON.parse(out)
    assert_equal [0, []], told.values_at("count", "types")
    assert_match(/several Ractors/, told["why"])
  end

  def test_a_snapshot_taken_from_inside_tells_it_too
    in_directory do |directory|
      path = File.join(directory, "own.snapshot")
      out, err, status = run_program(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-rculet", "-e", <<~RUBY, path, env: TestHelper::NEUTRAL)
        kept = Array.new(20_000) { "x" * 1000 }
        puts Culet.snapshot(ARGV.first) if kept.any?
      RUBY
      assert_equal [true, "", "#{path}\n"], [status.success?, err, out]
      report = json("report", path)
      assert_operator report["malloc_holdings"]["types"]["T_STRING"], :>=, 20_000_000
      assert_equal RUBY_VERSION, report["vm"]["version"]
      assert_equal "glibc", report["allocator_statistics"]["name"]
      assert_operator report["gc"]["count"], :>, 0
    end
  end
end
