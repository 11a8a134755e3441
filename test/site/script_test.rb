# frozen_string_literal: true

require "test_helper"

# What bin/site refuses before it builds anything.
class SiteScriptTest < Minitest::Test
  def site(*words) = run_program("#{ROOT}/bin/site", *words)

  def test_wrong_usage
    [%w[--outt x], %w[--out], %w[--base], %w[--base culet], %w[--base /culet/], %w[--serve 40x]].each do |words|
      out, err, status = site(*words)
      assert_equal [2, ""], [status.exitstatus, out], words
      assert_match(%r{\Aculet site: (usage: bin/site|--base takes a path)[^\n]*\n\z}, err)
    end
  end

  def test_a_folder_with_other_files_is_left_alone
    folder = new_folder
    File.write("#{folder}/thesis.txt", "years of work")
    [folder, "#{folder}/thesis.txt"].each do |target|
      out, err, status = site("--out", target)
      assert_equal [1, ""], [status.exitstatus, out]
      assert_equal "culet site: #{target} holds other files; name an empty or new folder with --out.\n", err
    end
    assert_equal "years of work", File.read("#{folder}/thesis.txt")
  end
end
