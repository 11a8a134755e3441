# frozen_string_literal: true

require_relative "../scope/scope_helper"

# Culet.report: a process's report on itself.
class OwnReportTest < Minitest::Test
  include ScopeHelper

  KEPT = "kept = Array.new(30_000) { |i| \"x\" * (#{LONG_STRING_BYTES} + (i % 300)) }; GC.start; ".freeze

  def test_the_levels_add_up_and_say_what_the_strings_hold
    report = own("#{KEPT}document = Culet.report")
    assert_equal report["rss_bytes"], report["levels"].values.sum
    assert_operator report["unexplained_bytes"].abs, :<=, report["rss_bytes"] / 100
    assert_operator report["levels"]["malloc_used"], :>, 25_000_000
    assert_operator report["malloc_holdings"]["types"]["T_STRING"], :>, 25_000_000
    assert_includes report["gc"].keys, "count"
  end

  def test_it_has_the_keys_of_the_command
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      assert_equal json("report", pid.to_s).keys, own("document = Culet.report(objects: false)").keys
    end
  end

  def test_it_reads_itself_while_other_threads_work_and_again_in_a_child
    # Who reads a file waits for its turn among the three afterwards (Ruby 4.0), which by their low priority is a shorter one.
    report = own(<<~RUBY)
      workers = Array.new(3) { Thread.new { loop { "x" * 1000 } } }
      workers.each { |one| one.priority = -3 }
      own = Culet.report
      child = IO.popen("-") { |io| io ? Integer(io.read) : print(Culet.report(objects: false)["pid"]) }
      workers.each(&:kill)
      document = own.merge("itself" => own["pid"] == Process.pid, "child" => child, "threads_now" => own["threads"])
    RUBY
    assert report["itself"]
    refute_equal report["pid"], report["child"]
    assert_operator report["threads_now"], :>=, 4
  end

  def test_what_it_needs_can_be_loaded_at_boot
    read = own(<<~RUBY)
      require "culet/report"
      loaded = $LOADED_FEATURES.dup
      Culet.report
      Dir.mktmpdir { |folder| Culet.snapshot(File.join(folder, "own.snapshot")) }
      document = { later: $LOADED_FEATURES - loaded }
    RUBY
    assert_empty read["later"]
  end

  def test_a_process_without_the_reader_gets_a_sentence
    message = own("require 'culet/scope'; $VERBOSE = nil; def (Culet::Native).part(*) = raise(Culet::Error, 'it is not built'); " \
                  "document = begin; Culet.report; rescue Culet::Error => e; { said: e.message }; end")["said"]
    assert_equal "it is not built", message
  end

  private

  # @param code [String] sets `document`, in a process of its own
  # @return [Hash] it
  def own(code)
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet", "-rjson", "-e", "#{code}\nputs JSON.generate(document)", env: NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    JSON.parse(out)
  end
end
