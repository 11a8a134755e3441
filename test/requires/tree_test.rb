# frozen_string_literal: true

require_relative "requires_helper"

# What is seen of a program's requires, and what each of them is charged with.
class RequiresTreeTest < Minitest::Test
  include RequiresHelper

  def test_the_tree_of_requires
    write("a.rb" => "require 'b'\nrequire_relative 'c'\nload '#{path("d.rb")}'\nrequire 'b'\n", "b.rb" => "B = 1", "c.rb" => "C = 1", "d.rb" => "D = 1")
    document = record(*ruby("-e", "require 'a'"))
    a = feature(document, "a.rb")
    assert_nil a["parent"]
    assert_equal %w[require require require_relative load], %w[a.rb b.rb c.rb d.rb].map { |name| feature(document, name)["how"] }
    assert_equal [path("a.rb")] * 3, %w[b.rb c.rb d.rb].map { |name| parent(document, feature(document, name)) }
    assert_equal 1, a["repeats"]
    assert_operator a["total_seconds"], :>=, a["self_seconds"] + %w[b.rb c.rb d.rb].sum { |name| feature(document, name)["total_seconds"] } - 1e-5
    assert_equal document["total_seconds"], a["total_seconds"]
    assert document["complete"]
  end

  def test_autoload_threads_fibers_and_the_module_functions
    write("automatic.rb" => "module Automatic; end", "in_thread.rb" => "", "in_fiber.rb" => "", "of_kernel.rb" => "", "outer.rb" => <<~RUBY)
      autoload :Automatic, "automatic"
      Automatic
      Thread.new { require "in_thread" }.join
      Fiber.new { require "in_fiber" }.resume
      Kernel.require "of_kernel"
    RUBY
    document = record(*ruby("-e", "require 'outer'"))
    assert_equal [path("outer.rb")] * 3, %w[automatic.rb in_fiber.rb of_kernel.rb].map { |name| parent(document, feature(document, name)) }
    assert_nil feature(document, "in_thread.rb")["parent"]
  end

  def test_c_extensions
    document = record(*ruby("-e", "require 'etc'"))
    one = feature(document, "etc")
    assert_match(%r{/etc\.so\z}, one["path"])
    assert_operator one["syscalls"], :>, 0
  end

  def test_what_c_code_requires_by_itself
    write("by_c.rb" => "BY_C = 1",
          "asks.rb" => "require 'fiddle'\n" \
                       "Fiddle::Function.new(Fiddle::Handle::DEFAULT['rb_require'], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP, " \
                       "need_gvl: true).call('by_c')\n" \
                       "BY_C")
    document = record(*ruby("-e", "require 'asks'"))
    one = feature(document, "by_c.rb")
    assert_equal ["C code", path("asks.rb")], [one["how"], parent(document, one)]
  end

  # psych.so requires a script before it is loaded itself, and that script another.
  def test_what_an_extension_requires_while_it_is_loaded
    document = record(*ruby("-e", "require 'psych'"))
    one = feature(document, "psych.so")
    assert_match(%r{/psych\.so\z}, one["path"])
    script = document["features"].find { |other| other["path"].to_s.end_with?("/psych/syntax_error.rb") }
    assert_equal ["C code", one["path"]], [script["how"], parent(document, script)]
    # The script of newer ones bears the extension's own name: strscan/strscan.rb.
    assert_equal 1, record(*ruby("-e", "require 'strscan'"))["features"].count { |other| other["path"].to_s.end_with?("/strscan.so") }
  end

  def test_objects_and_code_that_stay
    write("big.rb" => <<~RUBY, "none.rb" => "")
      KEPT = Array.new(1_000) { |number| "kept \#{number} " * 20 }
      LOST = Array.new(3_000) { "lost" }.size
      #{Array.new(200) { |number| "def method_#{number}(a, b) = [a, b, #{number}].map { |one| one.to_s + a.to_s }" }.join("\n")}
    RUBY
    document = record(*ruby("-e", "require 'big'; require 'none'"))
    big = feature(document, "big.rb")
    assert_operator big["objects"], :>=, 4_000
    assert_includes 1_000..3_500, big["retained_objects"]
    assert_operator big["retained_bytes"], :>, 1_000 * 200
    assert_operator big["iseq_bytes"], :>, 200 * 500
    assert_operator big["mallocs"], :>, 1_000
    assert_operator big["malloc_bytes"], :>, 1_000 * 200
    assert_operator feature(document, "none.rb")["retained_objects"], :<, 40
    assert_equal document["code"]["iseq_bytes"], document["code"]["files"].sum { |file| file["iseq_bytes"] }
    assert_operator document["code"]["iseq_bytes"], :>, big["iseq_bytes"]
  end

  def test_without_objects_followed_the_rest_is_there
    write("a.rb" => "A = 'a' * 100")
    document = record(*ruby("-e", "require 'a'"), options: ["--no-retained"])
    one = feature(document, "a.rb")
    assert_equal [nil, nil], one.values_at("retained_objects", "retained_bytes")
    assert_operator one["objects"], :>, 0
    assert_operator one["mallocs"], :>, 0
  end

  def test_errors_inside_a_required_file
    write("raises.rb" => "raise ArgumentError, 'no'", "syntax.rb" => "def (", "missing.rb" => "require 'nowhere_to_be_found'",
          "throws.rb" => "throw :out")
    write("outer.rb" => <<~RUBY)
      %w[raises syntax missing].each { |name| begin; require name; rescue Exception => e; end }
      catch(:out) { require "throws" }
    RUBY
    document = record(*ruby("-e", "require 'outer'"))
    assert_errors(document)
    assert_equal document["features"].count { |one| one["error"].nil? }, document["gems"].sum { |one| one["files"] }
  end

  def test_a_program_that_exits_inside_a_required_file
    write("leaves.rb" => "exit 7")
    document = record(*ruby("-e", "require 'leaves'"))
    assert_equal [7, "SystemExit"], [document["exit_status"], feature(document, "leaves.rb")["error"]]
    assert(document["problems"].any? { |sentence| sentence.include?("ended with status 7") })
  end

  def test_a_program_that_is_killed
    write("deadly.rb" => "Process.kill(:KILL, $$); sleep", "before.rb" => "B = 1")
    document = record(*ruby("-e", "require 'before'; require 'deadly'"))
    assert_equal [nil, 9, false], document.values_at("exit_status", "signal", "complete")
    assert_operator feature(document, "before.rb")["total_seconds"], :>, 0
    assert_equal path("deadly.rb"), feature(document, "deadly.rb")["path"]
    assert(document["problems"].any? { |sentence| sentence.include?("SIGKILL") })
  end

  def test_a_program_whose_recording_is_cut_off_runs_on
    write("before.rb" => "B = 1", "cuts.rb" => "Dir[ENV['CULET_REQUIRES'] + '/*'].each { |file| File.truncate(file, 0) }", "after.rb" => "puts :ran")
    out, err, status = run_culet("requires", "--", *ruby("-e", "require 'before'; require 'cuts'; require 'after'"), env: TestHelper::NEUTRAL)
    assert_equal [1, "ran\n"], [status.exitstatus, out]
    assert_match(/\Aculet: the recording of requires stops: .* the file was truncated\nculet: \S+ is not a recording of requires\n\z/, err)
  end

  def test_forked_and_executed_programs
    write("before.rb" => "B = 1", "in_child.rb" => "C = 1", "in_program.rb" => "P = 1")
    document = record(*ruby("-e", <<~RUBY))
      require "before"
      Process.wait(fork { require "in_child" })
      system(#{RbConfig.ruby.dump}, "-I#{@folder}", "-e", "require 'in_program'")
      exec("true") if fork.nil?
      Process.wait
    RUBY
    assert_equal [path("before.rb")], document["features"].map { |one| one["path"] }
    assert_equal [1, 1], document["processes"].map { |one| one["features"] }.sort.last(2)
    assert_includes document["processes"].map { |one| one["parent_pid"] }, document["pid"]
  end

  def test_the_program_itself
    write("main.rb" => "def held = [1, 2]")
    one = feature(record(*ruby(path("main.rb"))), "main.rb")
    assert_equal "program", one["how"]
    assert_operator one["iseq_bytes"], :>, 200
  end

  def test_a_shell_that_starts_it
    write("a.rb" => "A = 1")
    document = record("sh", "-c", "#{RbConfig.ruby} -I#{@folder} -e 'require \"a\"'; true")
    assert_equal path("a.rb"), feature(document, "a.rb")["path"]
  end

  # RubyGems tries again after it has activated a gem: one require, with the look-ups of both tries.
  def test_what_rubygems_does_belongs_to_the_require
    document = record(RbConfig.ruby, "-e", "begin; require 'nowhere_to_be_found'; rescue LoadError; end")
    plain = record(RbConfig.ruby, "--disable-gems", "-e", "begin; require 'nowhere_to_be_found'; rescue LoadError; end")
    both = [document, plain].map { |one| feature(one, "nowhere_to_be_found") }
    assert_equal %w[LoadError LoadError], both.map { |one| one["error"] }
    assert_operator both.first["syscalls"], :>, both.last["syscalls"]
  end

  private

  def assert_errors(document)
    assert_equal %w[ArgumentError SyntaxError LoadError left], %w[raises.rb syntax missing.rb throws.rb].map { |name| feature(document, name)["error"] }
    assert_equal "LoadError", feature(document, "nowhere_to_be_found")["error"]
    assert_equal path("missing.rb"), parent(document, feature(document, "nowhere_to_be_found"))
    assert_nil feature(document, "outer.rb")["error"]
  end
end
