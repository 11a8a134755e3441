# frozen_string_literal: true

require "rubies"
require_relative "strings_helper"

# Strings of processes under collectors that a Ruby loads as libraries. MMTk has no pages: Ruby goes over its heap object by
# object.
class StringsRubiesTest < Minitest::Test
  include StringsHelper

  SCRIPT = <<~'RUBY'
    $equal = Array.new(3000) { String.new("a secret text, the same in three thousand strings", capacity: 0) << "" }
    $others = Array.new(60_000) { |i| ["number #{i}"] }
    puts :up
    $stdout.flush
    sleep
  RUBY

  def setup
    skip_unless_all
  end

  Rubies.all.each do |ruby|
    define_method("test_under_collectors_of_their_own_on#{ruby.path.tr("^A-Za-z0-9.", "_")}") do
      skip "#{ruby.path} has no collector to load: CULET_TEST_RUBIES may name a Ruby configured --with-modular-gc" if ruby.collectors.empty?

      in_directory do |folder|
        lib = ruby.library(folder)
        ruby.collectors.each { |collector| assert_strings_told(ruby, lib, collector) }
      end
    end
  end

  private

  def assert_strings_told(ruby, lib, collector)
    with_program(ruby.path, "-w", "-I#{lib}", "-rculet/agent", "-e", SCRIPT, env: TestHelper::NEUTRAL.merge("RUBY_GC_LIBRARY" => collector)) do |pid|
      told = json("strings", pid.to_s, "--top", "1000")
      assert_includes 3000..3006, group(told, "a secret text")["count"], collector
      counted = type(ask(pid), "T_STRING")
      assert_in_delta counted["count"], told["strings"], 500, collector
      assert_in_delta counted["slot_bytes"] + counted["malloc_bytes"], told["string_bytes"], 100_000, collector
    end
  end
end
