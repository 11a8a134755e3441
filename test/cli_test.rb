# frozen_string_literal: true

require "test_helper"
require "culet/cli"

class CliTest < Minitest::Test
  def test_the_overview_names_every_verb
    [[], ["--help"], ["help"], ["-h"]].each do |words|
      out, err, status = culet(*words)
      assert_equal ["", 0], [err, status]
      Culet::CLI::VERBS.each_key { |verb| assert_match(/^  #{verb} /, out) }
    end
  end

  def test_version
    assert_equal "culet #{Culet::VERSION}\n", culet("--version").first
  end

  def test_an_unknown_verb_is_wrong_usage
    assert_sentence("culet: there is no verb \"nosuch\"; `culet --help` lists them\n", "nosuch", status: 2)
  end

  Culet::CLI::VERBS.each_key do |verb|
    # In a process of its own: what the verb loads gives no warning.
    define_method(:"test_#{verb}_has_help_with_examples_and_the_common_options") do
      out, err = assert_culet_success(verb, "--help")
      assert_empty err
      assert_match(/\Ausage: culet #{verb}/, out)
      ["Examples:\n  ", "--json", "--out FILE", "--[no-]color", "--help"].each { |word| assert_includes out, word }
      assert_empty out.lines.select { |line| line.chomp.size > 120 }
    end

    define_method(:"test_#{verb}_refuses_an_unknown_option") do
      advice = /\Aculet: invalid option: --no-such-option; (see `culet #{verb} --help`|did you mean `--no-\w+`\?)\n\z/
      assert_sentence(advice, verb, "--no-such-option", status: 2)
    end
  end
end
