# frozen_string_literal: true

require_relative "cow_helper"

# What comparing two processes takes, and what it makes of figures that contradict themselves.
class CowComparisonTest < Minitest::Test
  include CowHelper

  # Half a million blocks, of which each worker writes to many.
  BLOCKS = "WORDS = Array.new(450_000) { |i| \"word number \#{i} of many words, in a block\" * 2 }\nGC.start\n" \
           "family(2) { |n| WORDS.each_slice(20 + n) { |words| words.first << \"!\" } }"
  # Looks at a family and tells the most memory that it has had, and how many workers were compared.
  LOOK = <<~RUBY
    require "culet/tools/cow"
    found = Culet::Cow::ProcessTree.new(ARGV, writes: 2)
    puts File.read("/proc/self/status")[/^VmHWM:\\s+(\\d+) kB$/, 1], found.members.count(&:writes), *found.problems
  RUBY
  MOST_KIB = 60_000

  Comparison = Culet::Cow::Comparison
  RubyPage = Culet::Scope::RubyPage

  def test_memory
    with_family(*RUBY, "-e", "#{FORKS}#{BLOCKS}") do |pid|
      assert_operator Culet::Processes::Memory.rss_bytes(pid), :>, 80_000_000
      out, err, status = run_program(*RUBY, "-I#{ROOT}/lib", "-e", LOOK, pid.to_s, env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
      kib, compared, *problems = out.lines(chomp: true)
      assert_equal ["2", []], [compared, problems]
      assert_operator kib.to_i, :<, MOST_KIB
    end
  end

  # Blocks of no object, full of addresses of objects: whether one of them is code is looked up, not read each time.
  ADDRESSES = <<~RUBY
    require "fiddle"
    COPY = Fiddle::Function.new(Fiddle::Handle::DEFAULT["memcpy"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)
    OBJECT = Object.new
    BLOCKS = Array.new(400) { Fiddle.malloc(4000) } # Integers: no slot has these addresses
    BLOCKS.each { |block| COPY.call(block, [Fiddle.dlwrap(OBJECT)].pack("Q") * 500, 4000) }
    family(1) { BLOCKS.each { |block| COPY.call(block + 3992, "other...", 8) } && GC.start }
  RUBY
  MOST_READS = 10_000

  # Fiddle is a gem since Ruby 4.0.
  def test_reads
    with_family(RbConfig.ruby, "-e", "#{FORKS}#{ADDRESSES}") do |pid|
      parent, child = snapshots(pid)
      before = reads
      assert_operator Comparison.new(child, parent).call.touched(:data), :>, 1_000_000
      assert_operator reads - before, :<, MOST_READS
    end
  end

  # A page of Ruby's whose slots reach beyond it, of which there are none, or which lies in another; blocks that are cut off or
  # reach beyond their region.
  def test_figures_that_contradict_themselves
    with_family(*RUBY, "-e", WORKERS) do |pid|
      parent, child = snapshots(pid)
      page = child.ruby_pages.first
      region = child.regions.find { |one| !one.chunks_payload.empty? }
      [{ slot_bytes: 0 }, { slot_bytes: 44 }, { slots: 1 << 40 }, { slots: (1 << 64) - 1 }, { first_slot: 1 << 62 }, { first_slot: 3 },
       { address: child.ruby_pages[1].address + 8 },
       { address: (1 << 64) - 4096 }].each do |change|
        with(child.ruby_pages, 0, RubyPage.new(**page.to_h, **change)) do
          assert_contradiction(child, parent, change)
        end
      end
      whole = region.chunks_payload
      [[0x80], [*whole.bytes, 0x80], [0, *[0xff] * 8, 0x7f], [*[0xff] * 9, 1, 4], [0, *[0xff] * 10, 1]].each do |payload|
        region.chunks_payload = payload.pack("C*")
        assert_contradiction(child, parent, payload.last(12))
      end
      region.chunks_payload = whole
      assert_operator Comparison.new(child, parent).call.bytes, :>, 0
    end
  end

  def test_arguments
    side = { memory: -1, present: "", header_bytes: 0, blocks: [], ruby_page_bytes: 0, ruby_pages: "" }
    assert_equal [{}, [0] * 5, {}, {}], compare(side)
    assert_raises(KeyError) { compare({}) }
    assert_raises(TypeError) { compare(nil) }
    assert_raises(ArgumentError) { compare({ **side, present: "1234567" }) }
    assert_raises(ArgumentError) { compare({ **side, present: [8192, 4096].pack("Q*") }) }
    assert_raises(ArgumentError) { compare(side, unshared: [1, 2].pack("Q*")) }
    [0, 3, 4095, 1 << 40].each { |bytes| assert_raises(ArgumentError) { compare(side, page_bytes: bytes) } }
    # A process that cannot be read any more: its pages are unknown, not the same.
    assert_equal({ 128 => 8192 }, compare({ **side, present: [4096, 16_384].pack("Q*") }, unshared: [4096, 12_288].pack("Q*")).first)
  end

  HEAP_PAGE = 65_536
  SLOT = 64
  FIRST = 64
  SLOTS = (HEAP_PAGE - FIRST) / SLOT
  STRING = 0x05
  NAMES = Culet::Cow::Writes::BITS

  # Slots that both have free are linked anew only, and an object that came and went is no freed one of the relative's.
  def test_a_heap_page_of_which_objects_are_left
    page = [HEAP_PAGE, SLOT, FIRST, SLOTS]
    assert_equal({ NAMES[:collector] + NAMES[:freed] => 4096, NAMES[:freed] => HEAP_PAGE - 4096 },
                 given_back(slots { |n| n.even? ? [STRING, 7] : [0, 1] }, pages: page))
    assert_equal({ NAMES[:collector] => HEAP_PAGE },
                 given_back(slots { |n| n.even? ? [STRING, 7] : [0, 1] }, before: slots { |n| n.even? ? [STRING, 7] : [0, 2] }, pages: page))
  end

  OLD = STRING + 0x20
  # Up to Ruby 3.2.
  OLD_BY_AGE = STRING + 0x60

  # Ruby writes to the young object alone, if its age is not in it. Only the link of the page's first words differs.
  def test_a_heap_page_whose_objects_grow_old
    page = [HEAP_PAGE, SLOT, FIRST, SLOTS]
    link = { NAMES[:collector] => 4096 }
    young = 200
    equal = ->(all) { given_back(all, before: all, pages: page) }
    assert_equal({ **link, NAMES[:same] => HEAP_PAGE - 8192, NAMES[:aged] => 4096 }, equal.call(slots { |n| [n == young ? STRING : OLD, 7] }))
    assert_equal({ **link, NAMES[:same] => HEAP_PAGE - 4096 }, equal.call(slots { |n| [n == young ? 0 : OLD, 7] }))
    assert_equal({ **link, NAMES[:same] => HEAP_PAGE - 4096 }, equal.call(slots { |n| [n == young ? STRING : OLD_BY_AGE, 7] }))
  end

  # An object is written to where it begins.
  def test_a_young_object_that_reaches_into_the_next_page
    slot = 4096
    page = [HEAP_PAGE, slot, FIRST, (HEAP_PAGE - FIRST) / slot]
    all = Array.new(page.last) { |number| [number == 3 ? STRING : OLD, 7, *([number] * ((slot / 8) - 2))] }.flatten.pack("Q*").ljust(HEAP_PAGE - FIRST, "\0")
    assert_equal({ NAMES[:collector] => 4096, NAMES[:same] => HEAP_PAGE - 8192, NAMES[:aged] => 4096 }, given_back(all, before: all, pages: page))
  end

  private

  # @yieldparam number [Integer] of a slot
  # @yieldreturn [Array(Integer, Integer)] its first two words
  # @return [String] the slots of a page
  def slots = Array.new(SLOTS) { |number| [*yield(number), *([number] * 6)] }.flatten.pack("Q*")

  # @param after [String] the slots in the process
  # @param before [String] those in its relative, which has a heap page there
  # @return [Hash{Integer => Integer}] bytes by what was written
  def given_back(after, before: slots { [STRING, 7] }, pages: [], regions: [], present: [[HEAP_PAGE, 2 * HEAP_PAGE]], unshared: present)
    in_directory do |directory|
      here, there = [[after, 8], [before, 16]].map.with_index do |(bytes, link), number|
        path = "#{directory}/#{number}"
        File.binwrite(path, [link].pack("Q").ljust(FIRST, "\0") + bytes, HEAP_PAGE)
        File.open(path, "rb")
      end
      side = { header_bytes: 0, blocks: [], ruby_page_bytes: HEAP_PAGE }
      own = { **side, memory: here.fileno, present: present.flatten.pack("Q*"), ruby_pages: pages.pack("Q*") }
      related = { **side, memory: there.fileno, present: [HEAP_PAGE, 2 * HEAP_PAGE].pack("Q*"),
                  ruby_pages: [HEAP_PAGE, SLOT, FIRST, SLOTS].pack("Q*") }
      Culet::PageComparison.call(own, related, unshared.flatten.pack("Q*"), regions.pack("Q*"), 4096, 0, false).first
    ensure
      [here, there].compact.each(&:close)
    end
  end

  # System calls of this process so far that read.
  def reads = File.read("/proc/self/io")[/^syscr: (\d+)/, 1].to_i

  def compare(side, unshared: "", page_bytes: 4096) = Culet::PageComparison.call(side, side, unshared, "", page_bytes, 0, false)

  # @return [Array<Culet::Scope::Snapshot>] of the parent and of one child
  def snapshots(pid) = [pid, Culet::Processes::Tree.new(pid).pids.find { |one| one != pid }].map { |one| Culet::Scope::Reader.new(one).snapshot }

  # @param list [Array] of which an element is another while the block runs
  def with(list, index, element)
    kept = list[index]
    list[index] = element
    yield
  ensure
    list[index] = kept
  end

  def assert_contradiction(child, parent, what)
    error = assert_raises(Culet::Error, what.inspect) { Comparison.new(child, parent).call }
    assert_match(/\Athe snapshot of process #{child.pid} or #{parent.pid} is inconsistent: /, error.message)
  end
end
