# frozen_string_literal: true

require "test_helper"

# sig/culet.rbs says what the library does.
class SignaturesTest < Minitest::Test
  include TestHelper

  LINTERS = { "BUNDLE_GEMFILE" => "#{ROOT}/lint/Gemfile", "BUNDLE_PATH" => "#{ROOT}/.gems/lint" }.freeze
  private_constant :LINTERS

  def test_the_signatures_are_sound
    assert_succeeds(*%w[rbs -I sig validate])
  end

  def test_each_method_of_the_signatures_is_there_and_takes_these_parameters
    assert_equal "", assert_succeeds("ruby", "-Ilib", "test/signatures/conformance.rb")
  end

  def test_calls_take_and_return_what_the_signatures_say
    assert_equal "2\ntrue\n", calls("sig")
  end

  def test_a_wrong_signature_is_noticed
    folder = new_folder
    text = File.read("#{ROOT}/sig/culet.rbs")
    wrong = text.sub("(?objects: bool) -> Hash[String, untyped]", "(?objects: bool) -> Integer")
    refute_equal text, wrong
    File.write("#{folder}/culet.rbs", wrong)
    assert_raises(Minitest::Assertion) { calls(folder) }
  end

  private

  def calls(signatures)
    checks = { "RBS_TEST_RAISE" => "true", "RBS_TEST_OPT" => "-I #{signatures}", "RBS_TEST_TARGET" => "Culet,Culet::*",
               "RBS_TEST_LOGLEVEL" => "error" }
    assert_succeeds("ruby", "-Ilib", "test/signatures/calls.rb", env: checks)
  end

  # @return [String] what the command printed
  def assert_succeeds(*command, env: {})
    out, = assert_success("bundle", "exec", *command, env: NEUTRAL.merge(LINTERS, env))
    out
  end
end
