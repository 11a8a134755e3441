# frozen_string_literal: true

require_relative "cow_helper"

# What `culet cow` says of a family is what the kernel says (smaps), for families of many kinds.
class CowAgreementTest < Minitest::Test
  include CowHelper

  PYTHON = <<~PYTHON
    import os, sys, time
    words = [str(i) * 5 for i in range(60000)]
    r, w = os.pipe()
    for n in range(2):
        if os.fork() == 0:
            kept = [word + "!" for word in words[::7]]
            os.write(w, b"x")
            time.sleep(1000)
    os.read(r, 1); os.read(r, 1)
    print("up", flush=True)
    time.sleep(1000)
  PYTHON

  GRANDCHILDREN = "#{CowHelper::WORDS}family(2) { |n| reader, writer = IO.pipe; " \
                  "fork { WORDS.first(9_000).each { |w| w << \"?\" }; writer.write(\"x\"); sleep }; reader.read(1) }".freeze
  THREADS = "#{CowHelper::WORDS}Array.new(4) { Thread.new { sleep } }; " \
            "family(2) { |n| done = Queue.new; 4.times { Thread.new { WORDS.map(&:upcase); done << 1; sleep } }; 4.times { done.pop } }".freeze
  EXECUTED = "#{CowHelper::WORDS}reader, writer = IO.pipe; spawn(\"sleep\", \"1000\"); " \
             "fork { WORDS.each { |w| w << \"!\" }; writer.write(\"x\"); sleep }; reader.read(1); puts :up; $stdout.flush; sleep".freeze
  FILES = "#{CowHelper::FORKS}require \"tmpdir\"; $file = File.open(__FILE__ == \"-e\" ? RbConfig.ruby : __FILE__); " \
          "family(2) { |n| $text = $file.pread(200_000, n) }".freeze

  FAMILIES = {
    "workers on glibc" => [[*RUBY, "-e", WORKERS]],
    "workers on two arenas" => [[*RUBY, "-e", WORKERS], { "MALLOC_ARENA_MAX" => "2" }],
    "workers on culet" => [[*RUBY, "-e", WORKERS], "culet"],
    "workers on jemalloc" => [[*RUBY, "-e", WORKERS], "jemalloc"],
    "workers on tcmalloc" => [[*RUBY, "-e", WORKERS], "tcmalloc"],
    "workers on mimalloc" => [[*RUBY, "-e", WORKERS], "mimalloc"],
    "workers with gems" => [[RbConfig.ruby, "-rjson", "-ropenssl", "-e", WORKERS]],
    "workers that compacted" => [[*RUBY, "-e", "#{WORDS}GC.compact; family(2) { GC.compact }"]],
    "grandchildren" => [[*RUBY, "-e", GRANDCHILDREN]],
    "threads" => [[*RUBY, "-e", THREADS]],
    "a child that executed a program" => [[*RUBY, "-e", EXECUTED]],
    "eight workers" => [[*RUBY, "-e", "#{WORDS}family(8) { |n| WORDS.each_slice(40) { |words| words.first << \"!\" } }"]],
    "workers that read a file" => [[*RUBY, "-e", FILES]],
    "python" => [["/usr/bin/python3", "-c", PYTHON]],
    "a shell with a pipe" => [["sh", "-c", "(read -r line; echo $line) < /dev/null; (sleep 1000) & echo up; wait"]],
    "a family of one" => [[*RUBY, "-e", TestHelper::WAITING]]
  }.freeze

  # One of each kind of process; bin/test --all tries the others as well.
  FIRST = ["workers on culet", "workers on glibc", "grandchildren", "threads", "a child that executed a program", "a shell with a pipe"].freeze

  FAMILIES.each do |name, (command, env)|
    define_method("test_#{name.tr(" ", "_")}") do
      skip_unless_all unless FIRST.include?(name)
      with_family(*command, env: env.is_a?(String) ? on(env) : env || {}) do |pid|
        found = assert_agreement(pid)
        assert_equal Culet::Processes::Tree.new(pid).pids.sort, found.members.map(&:pid).sort
        assert_empty found.problems
        found.members.each { |member| assert_sums(member) }
      end
    end
  end

  # Workers at work share less and less.
  def test_while_it_works
    program = "#{WORDS}family(2) { |n| Thread.new { WORDS.each { |w| w << \"!\"; sleep 0.002 } } }"
    with_family(*RUBY, "-e", program, settled: false) { |pid| assert_agreement(pid, readings: 1) }
  end

  private

  # What is told must lie between a reading of the kernel's before and one after, but for one per cent. Whoever else maps
  # the same libraries comes and goes meanwhile, other tests' programs for instance, and that moves the share of each page
  # of theirs; and the kernel may reclaim a page between culet's own two readings, of mappings and of pages. So a family
  # at rest is read again, a few times, until nothing has changed.
  #
  # @return [Culet::Cow::ProcessTree]
  def assert_agreement(pid, readings: 8)
    pids = Culet::Processes::Tree.new(pid).pids
    before = found = after = nil
    readings.times do
      before = pids.to_h { |one| [one, kernel(one)] }
      found = family(pid)
      after = pids.to_h { |one| [one, kernel(one)] }
      break if before == after && found.members.all? { |member| member.rss_bytes == member.breakdown.total.resident }
    end
    found.members.each do |member|
      figures(member).each do |key, value|
        low, high = [before, after].map { |all| all.fetch(member.pid).fetch(key) }.minmax
        assert_operator value, :>=, low - tolerance(member, key), "#{key} of #{member.name} (#{member.pid})"
        assert_operator value, :<=, high + tolerance(member, key), "#{key} of #{member.name} (#{member.pid})"
      end
    end
    found
  end

  # The parts are the whole.
  def assert_sums(member)
    total = member.breakdown.total
    assert_equal member.rss_bytes, total.resident
    assert_in_delta member.shared_bytes, total.shared, tolerance(member, "shared")
    assert_in_delta member.private_bytes, total.private, tolerance(member, "private")
  end

  # One per cent, and a tenth of the pages of files, for a machine on which no two readings agree.
  def tolerance(member, key)
    files = member.snapshot.mappings.sum(&:shared_clean_bytes) + member.snapshot.mappings.sum(&:private_clean_bytes)
    (0.01 * member.rss_bytes) + (key == "rss_bytes" ? 0 : 0.1 * files)
  end

  def figures(member)
    { "rss_bytes" => member.rss_bytes, "pss_bytes" => member.pss_bytes, "private_dirty_bytes" => member.private_dirty_bytes,
      "shared" => member.shared_bytes, "private" => member.private_bytes }
  end

  def kernel(pid)
    all = Culet::Processes::Memory.rollup(pid)
    { **all.slice("rss_bytes", "pss_bytes", "private_dirty_bytes"), "shared" => all.values_at("shared_clean_bytes", "shared_dirty_bytes").sum,
      "private" => all.values_at("private_clean_bytes", "private_dirty_bytes").sum }
  end
end
