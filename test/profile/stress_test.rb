# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/tools/profile"

# A profile of a program that does everything at once: it goes on, and every stream can be read.
class ProfileStressTest < Minitest::Test
  SECONDS = ENV["CULET_TEST_ALL"] ? 300 : 1
  ON_CULET = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({})).freeze

  def test_with_the_samples_of_malloc
    data = profile(ON_CULET.merge("CULET_PROFILE" => "2k"))
    assert_includes data.sites(:allocated).map(&:kind), :malloc
  end

  def test_with_objects_alone
    profile(TestHelper::NEUTRAL.merge("CULET_PROFILE" => "4k"))
  end

  private

  def profile(environment)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "profile")
      out, err, status = run_program(RbConfig.ruby, "-W0", "-I#{File.join(TestHelper::ROOT, "lib")}", "-rculet/profile",
                                     File.join(__dir__, "stress_program.rb"), SECONDS.to_s, path, env: environment, patience: SECONDS + 120)
      assert_predicate status, :success?, err.lines.first(20).join
      assert_equal "done\n", out
      recordings = [path, "#{path}.child"].map { |name| Culet::Profile::Stream.load(name).recording }
      recordings.each { |recording| assert_equal 0, recording.lost }
      data = Culet::Profile::Data.new([recordings.first])
      assert_operator data.total(:live).samples, :<=, data.total(:allocated).samples
      data
    end
  end
end
