# frozen_string_literal: true

require_relative "cow_helper"
require_relative "../roots/in_tests"

# What was written to pages of newer Rubies' than this machine's: objects have other flags there, and slots other sizes.
class CowWritesRubiesTest < Minitest::Test
  include CowHelper
  include Roots::InTests

  RUBIES = { "trixie" => %w[ruby3.3], "testing" => %w[ruby3.3 ruby3.4] }.freeze

  METHODS = "class Many; 4000.times { |i| class_eval(\"def m\#{i}(a) = a.to_s.size + a.hash.abs + [a].first.to_i + \#{i}.succ\") }; end; 4.times { GC.start }; "

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
    calling = writes(ruby, "#{METHODS}family(1) { GC.disable; one = Many.new; 4000.times { |i| one.public_send(:\"m\#{i}\", 3) } }")
    assert_operator calling.touched(:inline_caches), :>, 0.7 * calling.bytes
    tree = tree(ruby, "GC.disable; all = Array.new(200_000) { |i| \"text \#{i}\" * 5 }; KEPT = all.each_slice(2).map(&:first); all = nil; family(1) { GC.enable; GC.start }")
    freeing = tree.workers.first.writes
    assert_operator freeing.only(:freed), :>, 10_000_000
    assert_operator freeing.avoidable_bytes.first, :>, 10_000_000
    surviving = writes(ruby, "GC.disable; KEPT = Array.new(200_000) { Object.new }; family(1) { GC.enable; GC.start }")
    assert_operator surviving.only(:aged), :>, 7_000_000
    assert_operator surviving.avoidable_bytes.first, :>, 7_000_000
    warmed_up = writes(ruby, "GC.disable; KEPT = Array.new(200_000) { Object.new }; Process.warmup; family(1) { GC.enable; GC.start }")
    assert_operator warmed_up.touched(:aged), :<, 1_000_000
    # A large block has malloc merge what is free, which both processes would do.
    tree = tree(ruby, "#{METHODS}'x' * 5_000; family(1) { GC.start }")
    rewritten = ruby.last.end_with?("3.3")
    assert_operator tree.workers.first.writes.only(:same), rewritten ? :> : :<, 2_000_000
    told = Culet::Cow::Verdicts.new(tree).list.filter_map(&:remedy).join(" ")
    assert_equal rewritten, told.include?("Ruby 3.4 keeps them shared")
  end

  # @return [Culet::Cow::Writes] of the child
  def writes(...) = tree(...).workers.first.writes

  # @return [Culet::Cow::ProcessTree]
  def tree(ruby, program)
    root, path = ruby
    with_family(*root.command(path, "--disable-gems", "-e", "#{FORKS}#{program}")) do |pid|
      found = family(pid, writes: 1)
      assert_empty found.problems
      return found
    end
  end
end
