# frozen_string_literal: true

require "json"
require_relative "../test_helper"

# What report, cow and doctor advise is what explain lists, or says is too small; and nobody advises what is in place.
class AdviceAgreementTest < Minitest::Test
  # Free memory in the arenas of threads that live on, in holes and in whole pages.
  ARENAS = "fill = -> { Array.new(20_000) { |i| 'x' * (#{LONG_STRING_BYTES} + i % 900) }.each_slice(40).map(&:first) }\n" \
           "threads = Array.new(4) { Thread.new { kept = Fiber.new(&fill).resume; Thread.current[:done] = true; sleep; kept } }\n" \
           "Thread.pass until threads.all? { |one| one[:done] }\nGC.start; GC.start\n".freeze
  SLOTS = "all = Array.new(800_000) { Object.new }\nkept = all.each_slice(200).map(&:first); all = nil\nGC.start; GC.start\n"
  UP = "puts :up; $stdout.flush; sleep"
  # As of a server with two workers that write to what they inherited.
  CLUSTER = "all = Array.new(200_000) { |i| \"text \#{i}\" * 5 }\nGC.start\n%sready, done = IO.pipe\n$0 = 'puma 6.6.0 (tcp://0.0.0.0:3000) [shop]'\n" \
            "2.times { fork { $0 = 'puma: cluster worker'; all.each { |one| one.setbyte(0, 33) }; done.write('.'); sleep } }\n2.times { ready.read(1) }\n#{UP}".freeze
  LIB = "-I#{ROOT}/lib".freeze
  # What stands in a line => the remedy.
  LINES = { /culet run -- COMMAND/ => "allocator", /culet lib auto/ => "trim", /MALLOC_ARENA_MAX=/ => "arenas", /Culet::Warmup\.requests|Culet\.warmup\(requests/ => "requests",
            /Culet\.warmup in the code that runs before/ => "warmup", /plugin :culet in/ => "plugin",
            /Culet\.warmup in the code that ends/ => "compact", /unset RUBY_/ => "collector" }.freeze

  def test_many_arenas
    named = agree(ARENAS + UP)
    assert_empty %w[allocator trim arenas] - named
  end

  def test_a_limit_on_arenas
    assert_includes agree(ARENAS + UP, env: { "MALLOC_ARENA_MAX" => "2" }, in_place: %w[arenas]), "allocator"
    agree(ARENAS + UP, env: { "GLIBC_TUNABLES" => "glibc.malloc.arena_max=4" }, in_place: %w[arenas])
  end

  def test_culet
    agree(ARENAS + UP, env: { "LD_PRELOAD" => "#{ROOT}/allocator/build/libculet.so" }, in_place: %w[allocator trim arenas])
  end

  def test_trims
    agree(ARENAS + UP, options: [LIB, "-rculet/auto"], in_place: %w[trim])
  end

  def test_a_sparse_heap
    assert_includes agree(SLOTS + UP), "compact"
    assert_includes agree(SLOTS + UP, env: INITIAL_HEAP, in_place: %w[compact]), "collector"
    agree("require 'culet'; Culet.warmup(steps: [:collect]); #{SLOTS}#{UP}", options: [LIB], in_place: %w[compact])
  end

  def test_a_cluster
    assert_includes agree(format(CLUSTER, "")), "plugin"
    agree(format(CLUSTER, "require 'culet'; Culet.warmup; "), options: [LIB], in_place: %w[warmup compact])
  end

  private

  # @return [Array<String>] what report, cow and doctor advise
  def agree(code, options: [], env: {}, in_place: [])
    with_program(RbConfig.ruby, "--disable-gems", *options, "-e", code, env: NEUTRAL.merge(env)) do |pid|
      listed, others = explained(pid)
      named = advised(pid)
      assert_empty (named | listed | others) & in_place, "#{named}, #{listed}, #{others}"
      assert_empty named - listed - others - ["plugin"], "#{named}, #{listed}, #{others}"
      # The plugin trims, too.
      assert_operator listed + others, :intersect?, %w[warmup trim] if named.include?("plugin") && !in_place.include?("warmup")
      return named
    end
  end

  def explained(pid)
    found = document("explain", pid, "--for", "1s")
    [found["remedies"].map { |one| one["name"] }, found["others"]]
  end

  def advised(pid)
    children = File.read("/proc/#{pid}/task/#{pid}/children").split
    texts = [pid, *children].flat_map { |one| remedies(document("report", one)["verdicts"]) + remedies(document("doctor", one)["findings"]) }
    texts += remedies(document("cow", pid)["verdicts"])
    LINES.filter_map { |line, name| name if texts.any? { |text| text.match?(line) } }
  end

  def remedies(list) = list.filter_map { |one| one["remedy"] }

  def document(verb, pid, *options)
    out, err, = culet(verb, pid.to_s, *options, "--json")
    refute_empty out, err
    JSON.parse(out)
  end
end
