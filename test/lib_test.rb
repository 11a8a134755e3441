# frozen_string_literal: true

require "test_helper"
require "json"

class LibTest < Minitest::Test
  def test_the_path_stands_alone_and_can_be_preloaded
    out, err, status = run_culet("lib")
    assert_predicate status, :success?
    assert_empty err
    assert_match(%r{\A/\S+/libculet\.so\n\z}, out)
    maps, = run_program("cat", "/proc/self/maps", env: NEUTRAL.merge("LD_PRELOAD" => out.chomp))
    assert_includes maps, out.chomp
  end

  def test_json
    out, = run_culet("lib", "--json")
    assert_equal run_culet("lib").first.chomp, JSON.parse(out)["path"]
  end

  def test_parts_to_load
    { "auto" => "#{ROOT}/lib/culet/auto.rb", "agent" => "#{ROOT}/lib/culet/agent.rb" }.each do |part, path|
      out, err, = run_culet("lib", part)
      assert_equal ["#{path}\n", ""], [out, err]
    end
    assert_equal "#{ROOT}/lib/culet/require.rb", JSON.parse(run_culet("lib", "require", "--json").first)["path"]
  end

  def test_other_arguments_are_wrong_usage
    [%w[x], %w[auto agent], %w[-- true]].each do |words|
      _, err, status = run_culet("lib", *words)
      assert_equal 2, status.exitstatus
      assert_match(/prints the path of libculet\.so; `culet lib PART` prints the path of a part/, err)
    end
  end
end
