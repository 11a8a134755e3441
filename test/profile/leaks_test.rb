# frozen_string_literal: true

require "test_helper"
require "leaking_extension"
require "culet/allocators"
require "culet/tools/profile"

# Programs with one planted leak each: the site is the first of the view `growth`.
class ProfileLeaksTest < Minitest::Test
  FOLDER = File.join(__dir__, "leaks")
  LOAD = File.join(__dir__, "leak_load.rb")

  # One of each kind; bin/test --all tries the others as well.
  FIRST = %w[closure.rb extension.rb fiber.rb fiddle.rb hash_default.rb string_that_grows.rb unbounded_queue.rb].freeze

  Dir.children(FOLDER).grep(/\.rb\z/).sort.each do |name|
    define_method("test_#{name.delete_suffix(".rb")}") do
      skip_unless_all unless FIRST.include?(name)
      skip "this Ruby has no fiddle: it is a gem since Ruby 4.0" if name == "fiddle.rb" && !fiddle?
      assert_found(File.join(FOLDER, name))
    end
  end

  private

  def fiddle?
    require "fiddle"
    true
  rescue LoadError
    false
  end

  # On a busy machine a program may stand still for most of a short time, and has not grown all the time then.
  def assert_found(path)
    line = File.readlines(path).index { |text| text.include?("# LEAK") } + 1
    rows = []
    [60, 300].find { |rounds| (rows = growth(path, rounds)).first&.name == "#{path}:#{line}" }
    refute_empty rows, "nothing has grown"
    assert_equal "#{path}:#{line}", rows.first.name, rows.first(4).map { |row| "#{row.name} #{row.bytes.round}" }.join("; ")
  end

  # @return [Array<Culet::Profile::Row>]
  def growth(path, rounds) = Dir.mktmpdir { |folder| profile(path, folder, rounds).by(:growth, :line) }

  def profile(path, folder, rounds)
    out = File.join(folder, "out")
    environment = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))
                                     .merge("CULET_PROFILE" => "32k", "CULET_PROFILE_OUT" => out, "LEAKING_EXTENSION" => extension(path, folder))
    assert_success(RbConfig.ruby, "-W0", "-I#{File.join(TestHelper::ROOT, "lib")}", "-rculet/profile", LOAD, path, rounds.to_s, env: environment)
    Culet::Profile::Data.new([Culet::Profile::Stream.load(out).recording])
  end

  def extension(path, folder) = File.basename(path) == "extension.rb" ? LeakingExtension.build(folder) : ""
end
