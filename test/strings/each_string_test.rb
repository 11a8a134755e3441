# frozen_string_literal: true

require_relative "strings_helper"

# Each String that the agent tells is what Ruby's own objspace says of it: what it holds, where its bytes lie, what it is.
# Strings are laid out differently by each Ruby; nothing here knows how.
class StringsEachStringTest < Minitest::Test
  include StringsHelper

  # Strings of all sorts, around the lengths at which they change their place.
  SCRIPT = <<~'RUBY'
    require "objspace"
    sizes = [0, 1, 15, 16, 23, 24, 47, 48, 55, 56, 100, 119, 120, 135, 136, 260, 600, 640, 1000, 5000]
    $strings = sizes.flat_map do |bytes|
      whole = "w#{"w" * bytes}".freeze
      [whole, whole[(bytes / 2)..], whole[1...-1], whole.dup, "u" * bytes, String.new("c" * (bytes / 2), capacity: bytes), +"a" << ("ä" * (bytes / 3)), -"i#{"i" * bytes}",
       ("l" * bytes) << "x", ("v" * bytes).tap { |one| one.instance_variable_set(:@a, 1) }, "b".b * bytes]
    end
    $strings.push("a literal that is longer than a slot of the smallest kind holds", :a_symbol_of_some_length_that_is_long_enough.name, $0, __FILE__)
    GC.start
    lines = $strings.map do |one|
      dump = ObjectSpace.dump(one)
      told = %w[embedded shared fstring frozen].map { |name| dump.include?("\"#{name}\":true") }
      [dump[/"address":"0x(\h+)"/, 1].hex, ObjectSpace.memsize_of(one), one.bytesize, *told, told[1] ? dump[/"references":\["0x(\h+)"/, 1].hex : 0]
    end
    File.binwrite(ENV.fetch("SAID"), Marshal.dump(lines))
    puts :up
    $stdout.flush
    sleep
  RUBY

  # As ext/culet/strings/record.h has them.
  FLAGS = [1 << 0, 1 << 1, 1 << 2, 1 << 4].freeze
  SITE = 1 << 9
  RECORD = Struct.new(:bytes, :flags, :address, :root, :kind, :length, :held, :site, :slot, :content_bytes) do
    def self.at(bytes, offset) = new(*bytes.unpack("LLQ6LL", offset: offset))
  end

  def test_each_string
    folder = new_folder
    with_agent(SCRIPT, env: { "SAID" => "#{folder}/said" }) do |pid|
      records = records_of(pid)
      said = Marshal.load(File.binread("#{folder}/said"))
      assert_operator said.size, :>=, 200
      said.each do |address, *expected|
        record = records.fetch(address)
        assert_equal expected, [record.held, record.length, *FLAGS.map { |flag| record.flags.anybits?(flag) }, record.root],
                     "held, length, embedded, shared, interned, frozen, root"
      end
      assert(said.any? { |_, _, _, _, shared| shared })
    end
  end

  private

  # @return [Hash{Integer => RECORD}] by address
  def records_of(pid)
    answer = Culet::Agent::Conversation.new(pid).ask("strings content=0 most_bytes=100000000", limit_seconds: 60, wait_seconds: 10)
    records = {}
    offset = 0
    while offset < answer.bytesize - 256
      record = RECORD.at(answer, offset)
      records[record.address] = record unless record.flags.anybits?(SITE)
      offset += record.bytes
    end
    records
  end
end
