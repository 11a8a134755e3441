# frozen_string_literal: true

require "test_helper"
require "json"

# Ruby 4 with RUBY_BOX=1: what works there, works; what cannot, says so. That collections are followed by one trim,
# however many boxes ask for it, is in test/trim/process_test.rb.
class BoxesTest < Minitest::Test
  BOXED = NEUTRAL.merge("RUBY_BOX" => "1").freeze
  QUIET = "-W:no-experimental"

  def setup
    skip "this Ruby has no boxes" unless defined?(Ruby::Box)
  end

  def test_a_box_of_its_own_has_culet
    told = JSON.parse(boxed(<<~RUBY).first)
      require "json"
      box = Ruby::Box.new
      box.eval("$LOAD_PATH.unshift('#{ROOT}/lib')")
      box.require("culet")
      kept = Array.new(20_000) { "x" * 1_000 }
      puts JSON.generate([box::Culet.equal?(Culet), [Culet, box::Culet].map { |culet| [culet.allocator[:name], culet.stats[:used_bytes] > kept.size * 1_000, culet.warmup[:steps]] }])
    RUBY
    assert_equal [false, [["glibc", true, %w[ruby collect trim]]] * 2], told
  end

  def test_a_process_in_boxes_tells_of_itself
    folder = new_folder
    file = File.join(folder, "own.snapshot")
    boxed("kept = Array.new(20_000) { 'x' * 1_000 }; Culet.snapshot(ARGV.first); kept", file)
    out, = assert_culet_success("report", "--json", file, env: NEUTRAL)
    assert_operator JSON.parse(out)["malloc_holdings"]["types"]["T_STRING"], :>, 20_000_000
  end

  def test_the_load_paths_index_steps_aside
    out, err = boxed("require 'set'; p Culet::Require.figures, defined?(Set)", library: "culet/require")
    assert_equal "culet: require is unchanged: this Ruby runs in boxes\n", err
    assert_match(/"constant"\n\z/, out)
  end

  def test_requires_are_not_recorded_and_that_is_said
    out, err, status = run_culet("requires", "--", "env", "RUBY_BOX=1", RbConfig.ruby, QUIET, "-e", "puts :ran", env: NEUTRAL)
    assert_equal [1, "ran\n"], [status.exitstatus, out]
    assert_match(/^culet: nothing is recorded: this Ruby runs in boxes, each with its own require; unset RUBY_BOX$/, err)
    assert_match(/^culet: nothing was recorded: /, err)
  end

  private

  # @return [Array(String, String)] what a program that has loaded culet said in the main box, and on its standard error
  def boxed(script, *words, library: "culet")
    out, err = assert_success(RbConfig.ruby, QUIET, "-I#{ROOT}/lib", "-r#{library}", "-e", script, *words, env: BOXED)
    [out, err]
  end
end
