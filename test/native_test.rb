# frozen_string_literal: true

require "test_helper"
require "culet"
require "culet/allocators"
require "json"

class NativeTest < Minitest::Test
  def test_loading_costs_the_native_part_and_nothing_else
    out, err, status = ask("before = $LOADED_FEATURES.dup; require 'culet'; puts $LOADED_FEATURES - before", "--disable-gems")
    assert_predicate status, :success?, err
    assert_empty err
    names = out.lines(chomp: true).map { |path| path.delete_prefix("#{ROOT}/lib/") }
    assert_equal %w[culet.rb culet/culet.so culet/errors.rb culet/native.rb culet/rails_hook.rb culet/version.rb], names.sort
  end

  def test_the_native_part_is_there
    assert_predicate Culet, :native?
  end

  TestHelper.allocators.each do |name|
    define_method(:"test_allocator_and_stats_under_#{name}") do
      choice = installed(name)
      script = "require 'culet'; require 'json'; puts JSON.generate([Culet.allocator, Culet.stats, Culet.allocator.frozen?])"
      out, err, status = ask(script, env: NEUTRAL.merge(choice.environment({})))
      assert_predicate status, :success?, err
      allocator, stats, frozen = JSON.parse(out)
      assert_equal [name, name == "culet"], allocator.values_at("name", "active")
      assert_match(/\A\d+\.\d+/, allocator["version"]) unless name == "rpmalloc"
      assert_equal File.realpath(choice.library), File.realpath(allocator["library"]) if choice.library
      assert frozen
      %w[glibc culet].include?(name) ? assert_plausible(stats) : assert_nil(stats)
    end
  end

  # What the program takes shows in what malloc says it gave.
  %w[glibc culet].each do |name|
    define_method(:"test_stats_follow_the_program_under_#{name}") do
      script = <<~RUBY
        require "culet"
        total = -> { Culet.stats.values_at(:used_bytes, :large_bytes).sum }
        before = total.call
        small = Array.new(20_000) { "x" * 1000 }
        large = "x" * (64 << 20)
        after = total.call
        puts after - before, small.size + large.size > 0
      RUBY
      out, err, = ask(script, env: NEUTRAL.merge(Culet::Allocators.parse(name).environment({})))
      assert_empty err
      taken = out.lines.first.to_i
      assert_in_delta 20_000 * 1000 + (64 << 20), taken, 6 << 20
    end
  end

  def test_a_ractor_may_ask
    script = "require 'culet'; puts Ractor.new { Culet.allocator[:name] }.then { |r| r.respond_to?(:value) ? r.value : r.take }"
    out, = ask(script, "-W:no-experimental", env: NEUTRAL)
    assert_equal "glibc\n", out
  end

  def test_without_the_native_part_the_reason_is_said
    directory = new_folder
    FileUtils.mkdir_p(File.join(directory, "lib"))
    FileUtils.cp_r("#{ROOT}/lib/.", File.join(directory, "lib"))
    FileUtils.rm_f(File.join(directory, "lib/culet/culet.so"))
    File.write(File.join(directory, "lib/culet/native_missing.txt"),
               "libculet.so: there is no make on PATH; install make\nculet.so: Ruby's C headers are not there; install ruby-dev\n")
    script = "require 'culet'; p Culet.native?; begin; Culet.allocator; rescue Culet::Error => e; puts e.message; end; " \
             "begin; Culet.stats; rescue Culet::Error => e; puts e.message; end; " \
             "require 'culet/allocators'; begin; Culet::Allocators.culet_library; rescue Culet::Error => e; puts e.message; end"
    out, err, = run_program(RbConfig.ruby, "-w", "-I#{directory}/lib", "-e", script, env: NEUTRAL)
    assert_empty err
    native, allocator, stats, library = out.lines(chomp: true)
    assert_equal "false", native
    assert_match(/culet\.so was not built: Ruby's C headers are not there; install ruby-dev; then run/, allocator)
    assert_equal allocator, stats
    assert_match(/libculet\.so was not built: there is no make on PATH; install make; then run/, library)
  end

  def test_a_native_part_that_does_not_load_is_said
    directory = new_folder
    FileUtils.cp_r("#{ROOT}/lib", directory)
    File.binwrite(File.join(directory, "lib/culet/culet.so"), "not a library")
    script = "require 'culet'; p Culet.native?; begin; Culet.allocator; rescue Culet::Error => e; puts e.message; end"
    out, err, = run_program(RbConfig.ruby, "-w", "-I#{directory}/lib", "-e", script, env: NEUTRAL)
    assert_empty err
    assert_equal "false", out.lines.first.chomp
    assert_match(/culet\.so does not load: .*rebuild it with/, out.lines.last)
  end

  # In a checkout, here a copy of the Ruby files alone.
  def test_a_program_that_is_not_built_is_said
    folder = new_folder
    copy_ruby_files(folder)
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{folder}/lib", "#{ROOT}/exe/culet", "report", Process.pid, env: NEUTRAL)
    assert_equal [1, "", "culet: reader/culet-scope is not built: run `gem pristine culet --extensions`\n"], [status.exitstatus, out, err]
  end

  # A program that is started with RUBYOPT has one copy by path, and its bundle may have another.
  def test_the_second_copy_of_the_gem_gives_way
    names = %w[culet culet/agent culet/auto culet/blackbox culet/feature_index culet/limit culet/metrics culet/profile culet/require
               culet/unused culet/warmup]
    folder = new_folder
    copy_ruby_files(folder)
    code = "ARGV.each { |name| require name }; puts $LOADED_FEATURES.grep(%r{\\A#{folder}/}).grep(/errors|runtime/), Culet.method(:report).source_location"
    out, err = assert_success(RbConfig.ruby, "-w", "-r#{ROOT}/lib/culet/agent.rb", "-I#{folder}/lib", "-e", code, *names, env: NEUTRAL.merge("CULET_LIMIT" => "9T"))
    assert_empty err
    assert_equal "#{ROOT}/lib/culet.rb", out.lines(chomp: true).first
  end

  private

  def ask(script, *flags, env: NEUTRAL)
    run_program(RbConfig.ruby, "-w", *flags, "-I#{ROOT}/lib", "-e", script, env: env)
  end

  # rpmalloc is packaged by Debian's newest releases only.
  def installed(name)
    choice = Culet::Allocators.parse(name)
    choice.environment({})
    choice
  rescue Culet::Error => e
    raise unless name == "rpmalloc"

    skip e.message
  end

  def assert_plausible(stats)
    assert_empty %w[free_bytes heap_bytes large_blocks large_bytes used_bytes] - stats.keys
    assert_operator stats["used_bytes"], :>, 0
    assert_equal stats["heap_bytes"], stats["used_bytes"] + stats["free_bytes"]
  end
end
