# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/tools/profile"

# Estimates against the truth: programs whose live bytes by line are known.
class ProfileTruthTest < Minitest::Test
  # Each line keeps strings whose buffers fill a size class: bytes of a buffer => buffers. The rest is churn. Ruby 3.2 and
  # later have strings of up to 640 bytes in their slots.
  SITES = { 112 => 30_000, 208 => 20_000, 1024 => 5_000, 4096 => 900, 16_384 => 300, 262_144 => 12, 4_194_304 => 2 }
          .reject { |bytes,| bytes < 700 && RUBY_VERSION >= "3.2" }.freeze
  LINES = SITES.map do |bytes, count|
    "#{count}.times { 3.times { 'y' * #{bytes / 2} }; KEPT[$kept] = 'x' * #{bytes - 1}; $kept += 1 }"
  end
  PROGRAM = ["KEPT = Array.new(#{SITES.values.sum}); $kept = 0", *LINES, "3.times { GC.start }", ""].join("\n")
  RUNS = 20
  SAMPLE_BYTES = 65_536

  def test_the_truth_is_within_the_interval_in_19_of_20_cases
    folder = new_folder
    path = File.join(folder, "sites.rb")
    File.write(path, PROGRAM)
    cases = Array.new(RUNS) { |run| outcomes(path, File.join(folder, run.to_s)) }.flatten
    # 95 %, less 3.5 standard deviations
    least = (cases.size * 0.95) - (3.5 * Math.sqrt(cases.size * 0.95 * 0.05))
    assert_operator cases.count(true), :>=, least, "of #{cases.size}"
  end

  private

  def outcomes(path, out)
    # The slots of the strings are samples of their own.
    sites = profile(path, out).sites(:live).select { |site| site.kind == :malloc }.group_by { |site| site.names(:line).first }
    SITES.each_with_index.map do |(bytes, count), at|
      sum = sites.fetch("#{path}:#{at + 2}", []).map(&:estimate).reduce(:+)
      sum ? (bytes * count).between?(sum.low_bytes.floor, sum.high_bytes.ceil) : false
    end
  end

  def profile(path, out)
    environment = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))
                                     .merge("CULET_PROFILE" => SAMPLE_BYTES.to_s, "CULET_PROFILE_OUT" => out)
    assert_success(RbConfig.ruby, "-W0", "-I#{File.join(TestHelper::ROOT, "lib")}", "-rculet/profile", path, env: environment)
    Culet::Profile::Data.new([Culet::Profile::Stream.load(out).recording])
  end
end
