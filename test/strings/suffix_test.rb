# frozen_string_literal: true

require_relative "strings_helper"
require_relative "../roots/in_tests"

# The lesson of the shared suffix, on every Ruby there is.
class StringsSuffixTest < Minitest::Test
  include Roots::InTests

  LESSON = File.join(TestHelper::ROOT, "docs/site/examples/suffix.rb")

  # What is held, by what the lesson calls it: of the short whole, then of the long one. Up to 3.1 all slots are of 40 bytes;
  # later a text of up to 55 lies in one of 80.
  FIGURES = { "3.1" => { "its end, whole[from..]" => [40, 40], "its middle, whole[from...-3]" => [80, 80],
                         "built anew, equal to the end" => [84, 84], "the whole" => [104, 1097] },
              "later" => { "its end, whole[from..]" => [40, 40], "its middle, whole[from...-3]" => [80, 80],
                           "built anew, equal to the end" => [80, 80], "the whole" => [160, 1097] },
              "4.1" => { "its end, whole[from..]" => [40, 40], "its middle, whole[from...-3]" => [64, 64],
                         "built anew, equal to the end" => [80, 80], "the whole" => [96, 1097] } }.freeze

  # @param printed [String] what the lesson said
  def assert_lesson(version, printed)
    expected = FIGURES.values_at("3.1", "later", "4.1")[%w[3.2 4.1].count { |since| version >= since }]
    lines = printed.lines(chomp: true).reject(&:empty?)
    told = expected.to_h { |name, _| [name, lines.select { |line| line.start_with?(name) }.map { |line| line[/(\d+) held/, 1].to_i }] }
    assert_equal expected, told, printed
    assert_equal(["its end, whole[from..]"] * 2, lines.grep(/, shares\z/).map { |line| line[/\A.*?\]/] }, printed)
  end

  def test_here
    out, err, status = run_program(RbConfig.ruby, "-w", LESSON, env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    assert_lesson(RUBY_VERSION, out)
  end

  def test_in_other_releases
    %w[trixie testing].each do |name|
      root = root(name)
      Dir.mktmpdir do |share|
        FileUtils.cp(LESSON, share)
        root.rubies.each do |ruby|
          assert_lesson(ruby[/[\d.]+\z/], root.run(ruby, "-w", "#{Roots::Root::SHARE}/suffix.rb", share: share))
        end
      end
    end
  end
end
