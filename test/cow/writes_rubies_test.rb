# frozen_string_literal: true

require_relative "cow_helper"
require_relative "../roots/in_tests"

# What was written to pages of newer Rubies' than this machine's: objects have other flags there, and slots other sizes.
class CowWritesRubiesTest < Minitest::Test
  include CowHelper
  include Roots::InTests

  RUBIES = { "trixie" => %w[ruby3.3], "testing" => %w[ruby3.3 ruby3.4] }.freeze

  RUBIES.each do |name, rubies|
    rubies.each do |ruby|
      define_method("test_#{ruby.tr(".", "_")}_of_#{name}") do
        look([root(name), "/usr/bin/#{ruby}"])
      end
    end
  end

  private

  # @param ruby [Array(Roots::Root, String)] where it is, and its path inside
  def look(ruby)
    freezing = writes(ruby, "KEPT = Array.new(50_000) { Object.new }; 4.times { GC.start }; family(1) { GC.disable; KEPT.each(&:freeze) }")
    assert_equal 50_000, freezing.flags["frozen"]
    assert_operator freezing.only(:flag_bits), :>, 0.8 * freezing.bytes
    changing = writes(ruby,
                      "class K; def initialize = @a = 1; def b = @a = 2; end; KEPT = Array.new(50_000) { K.new }; 4.times { GC.start }; family(1) { GC.disable; KEPT.each(&:b) }")
    assert_operator changing.only(:data), :>, 0.8 * changing.bytes
    assert_in_delta 50_000 * 40, changing.holdings["T_OBJECT"].old, 100_000
    calling = writes(ruby, "class Many; 4000.times { |i| class_eval(\"def m\#{i}(a) = a.to_s.size + a.hash.abs + [a].first.to_i + \#{i}.succ\") }; end; 4.times { GC.start }; " \
                           "family(1) { GC.disable; one = Many.new; 4000.times { |i| one.public_send(:\"m\#{i}\", 3) } }")
    assert_operator calling.touched(:inline_caches), :>, 0.7 * calling.bytes
  end

  # @return [Culet::Cow::Writes] of the child
  def writes(ruby, program)
    root, path = ruby
    with_family(*root.command(path, "--disable-gems", "-e", "#{FORKS}#{program}")) do |pid|
      found = family(pid, writes: 1)
      assert_empty found.problems
      return found.workers.first.writes
    end
  end
end
