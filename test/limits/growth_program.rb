# frozen_string_literal: true

# Asserts many times over that memory does not grow, and prints a JSON line per block: its name, how often the assertion
# passed, and how often it failed. ruby growth_program.rb steady|leaks TIMES [EXTENSION]
require "bigdecimal"
require "bigdecimal/util"
require "culet/limits"
require "date"
require "digest"
require "json"
require "openssl"
require "psych"
require "set"
require "socket"
require "stringio"
require "strscan"
require "time"
require "zlib"
require ARGV.fetch(2) if ARGV[2]

# The tests of no framework: what an assertion says is of no interest.
class Assertions
  include Culet::Limits

  def culet_assert(passed) = passed
end

DOCUMENT = JSON.generate(Array.new(20) { |id| { "id" => id, "name" => "customer #{id}", "tags" => %w[a b c], "sum" => id * 1.5 } })
TEXT = "The quick brown fox jumps over the lazy dog. " * 40
Point = Struct.new(:x, :y)
RECENT = {} # rubocop:disable Style/MutableConstant
@calls = 0

STEADY = {
  "strscan" => -> { StringScanner.new(TEXT).tap { |scanner| scanner.scan(/\w+\s*/) until scanner.scan(/\w+\W*/).nil? } },
  "zlib" => -> { Zlib::Inflate.inflate(Zlib::Deflate.deflate(TEXT)) },
  "zlib stream left open" => -> { Zlib::Deflate.new.tap { |stream| stream << TEXT } },
  "bigdecimal" => -> { (BigDecimal("3.14159265358979") * "2.718281828".to_d).sqrt(30).to_s },
  "json" => -> { JSON.generate(JSON.parse(DOCUMENT)) },
  "psych" => -> { Psych.load(Psych.dump({ "a" => [1, 2.5, "text"], "b" => nil })) },
  "digest" => -> { Digest::SHA256.hexdigest(TEXT) },
  "openssl" => -> { OpenSSL::Cipher.new("aes-128-cbc").encrypt.tap { |cipher| cipher.key = "k" * 16 }.update(TEXT) },
  "date" => -> { DateTime.parse("2026-11-27T13:52:52+01:00").next_month.iso8601 },
  "time" => -> { Time.iso8601("2026-11-27T13:52:52Z").localtime.strftime("%F %T %z") },
  "regexp" => -> { Regexp.new("a#{@calls += 1}|b+").match(TEXT) },
  "exceptions" => -> { [1].fetch(9) rescue $!.full_message }, # rubocop:disable Style/RescueModifier
  "threads" => -> { Array.new(2) { Thread.new { TEXT.upcase } }.each(&:join) },
  "fibers" => -> { Fiber.new { Fiber.yield(TEXT.size) }.resume },
  "sockets" => -> { UNIXSocket.pair.each { |socket| socket.close } }, # rubocop:disable Style/SymbolProc
  "strings" => -> { Array.new(50) { |at| TEXT * (at % 7) }.join.scan("fox").size },
  "random sizes" => -> { Array.new(20) { "x" * rand(5_000) } },
  "symbols" => -> { :"dynamic symbol #{@calls += 1}" },
  "evaluation" => -> { Object.new.instance_eval("[self, #{@calls += 1}]", __FILE__, __LINE__) }, # [self, 1]
  "a bounded cache" => -> { RECENT.store(@calls += 1, "page #{@calls} " * 20) && (RECENT.shift if RECENT.size > 30) }
}.freeze

KEPT = [] # rubocop:disable Style/MutableConstant
BY_KEY = {} # rubocop:disable Style/MutableConstant
LEAKS = {
  "100 bytes of malloc" => -> { Leaking.parse(100) },
  "100 bytes of malloc amid work" => -> { STEADY.fetch("json").call && STEADY.fetch("random sizes").call && Leaking.parse(100) },
  "an object of 100 bytes" => -> { KEPT << ("x" * 59) },
  "objects amid work" => -> { STEADY.fetch("json").call && STEADY.fetch("threads").call && (KEPT << Point.new(1, [2])) },
  "an object by key" => -> { BY_KEY[@calls += 1] = [@calls, "k"] }
}.freeze

blocks = { "steady" => STEADY, "leaks" => LEAKS }.fetch(ARGV.fetch(0))
test = Assertions.new
blocks.each do |name, work|
  passed = Array.new(Integer(ARGV.fetch(1))) { test.assert_no_memory_growth(&work) }.count(true)
  puts JSON.generate("name" => name, "passed" => passed, "failed" => Integer(ARGV.fetch(1)) - passed)
  $stdout.flush
end
