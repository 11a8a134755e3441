# frozen_string_literal: true

require "test_helper"
require "culet/text/size"
require "culet/text/numbers"

# Byte counts have one form wherever people read them.
class SizeTest < Minitest::Test
  TEXTS = { nil => "", 0 => "0 bytes", 1 => "1 byte", -1 => "-1 byte", 999 => "999 bytes", 1_000 => "1.00 kB", 4_096 => "4.10 kB", 99_940 => "99.9 kB",
            99_960 => "100 kB", 1_000_000 => "1.00 MB", 70_700_000 => "70.7 MB", -70_700_000 => "-70.7 MB", 16_800_000_000 => "16.8 GB",
            2 * (10**12) => "2.00 TB", 5 * (10**16) => "50.0 PB" }.freeze

  def test_bytes_in_words
    TEXTS.each { |bytes, text| assert_equal text, Culet::Text::Size.human(bytes) }
  end

  def test_changes_and_parts
    assert_equal ["+1.00 kB", "0 bytes", "0 bytes", "-70.7 MB"], [999.6, 0.4, 0, -70_700_000].map { |bytes| Culet::Text::Size.signed(bytes) }
    assert_equal ["12.5 %", "0.0 %", "0.0 %"], [[1, 8], [1, 0], [-1, 10_000]].map { |part, whole| Culet::Text::Numbers.percent(part, whole) }
    assert_equal ["13 %", "0 %"], [[1, 8], [1, 0]].map { |part, whole| Culet::Text::Numbers.percent(part, whole, digits: 0) }
  end

  # What rounds to nought has no sign.
  def test_cells_of_a_column
    assert_equal %w[0.0 0.0 -0.1 12.3 -], [0, -49_999, -50_001, 12_345_678, nil].map { |bytes| Culet::Text::Size.cell(bytes) }
    assert_equal "0.012", Culet::Text::Size.cell(12_345, digits: 3)
    assert_equal "0.00", Culet::Text::Size.cell(-4_000, digits: 2)
    assert_equal "-0.5", Culet::Text::Size.cell(-500, unit: 1_000)
  end

  def test_figures_without_a_unit
    assert_equal %w[0 0.00 -0.01 1.23 12.3 123 12,345], [0, -0.001, -0.009, 1.234, 12.34, 123.4, 12_345].map { |one| Culet::Text::Numbers.significant(one) }
  end

  # A text that counts bytes by 1,024 would differ from those beside it. A page, and a huge page, are sized so by hardware;
  # settings name what they take.
  def test_no_other_unit_is_printed
    texts = Dir.glob(%w[lib/**/*.{rb,js,erb} reader/src/**/*.c replay/{recorder,player}/*.c], base: TestHelper::ROOT).reject { |path| path.end_with?("size.rb") }
    found = texts.flat_map do |path|
      File.readlines(File.join(TestHelper::ROOT, path), encoding: "UTF-8").grep(/["'`][^"'`]*(?:\d|\}|%zu|%s) ?[KMGT]iB\b/).grep_v(%r{\A\s*/\*|\bpages? of|page_|huge pages|[MG]B(?:,| or) \d+MiB|1 KiB[,;] every}).map { |line| [path, line.strip] }
    end
    assert_empty found
  end
end
