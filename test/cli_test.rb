# frozen_string_literal: true

require "test_helper"
require "culet/cli"

class CliTest < Minitest::Test
  def test_the_overview_names_every_verb
    [[], ["--help"], ["help"], ["-h"]].each do |words|
      out, err, status = run_culet(*words)
      assert_predicate status, :success?
      assert_empty err
      Culet::CLI::VERBS.each_key { |verb| assert_match(/^  #{verb} /, out) }
    end
  end

  def test_version
    assert_equal "culet #{Culet::VERSION}\n", run_culet("--version").first
  end

  def test_an_unknown_verb_is_wrong_usage
    out, err, status = run_culet("nosuch")
    assert_equal [2, ""], [status.exitstatus, out]
    assert_equal "culet: there is no verb \"nosuch\"; `culet --help` lists them\n", err
  end

  Culet::CLI::VERBS.each_key do |verb|
    define_method(:"test_#{verb}_has_help_with_examples_and_the_common_options") do
      out, err, status = run_culet(verb, "--help")
      assert_predicate status, :success?, err
      assert_empty err
      assert_match(/\Ausage: culet #{verb}/, out)
      ["Examples:", "--json", "--out FILE", "--[no-]color", "--help"].each { |word| assert_includes out, word }
    end

    define_method(:"test_#{verb}_refuses_an_unknown_option") do
      out, err, status = run_culet(verb, "--no-such-option")
      assert_equal [2, ""], [status.exitstatus, out]
      assert_match(/\Aculet: invalid option: --no-such-option; (see `culet #{verb} --help`|did you mean `--no-\w+`\?)\n\z/, err)
    end
  end
end
