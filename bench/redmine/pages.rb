# frozen_string_literal: true

require "etc"

# The anonymous pages of a process with their page frames (pagemap(5), for root), and whether they are heap pages of
# Ruby. After a fork, a page with the same frame is shared, one with another frame was copied.
#
#   ruby pages.rb PID FILE    writes the pages of a process, for `Pages.load`
class Pages
  BYTES = Etc.sysconf(Etc::SC_PAGESIZE)
  HEAP_PAGE_BYTES = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE, 65_536)
  PRESENT = 1 << 63
  FRAME = (1 << 55) - 1
  # A heap page begins with the address of its descriptor (struct heap_page of gc.c), one of whose first words is the
  # address of the first slot.
  DESCRIPTOR_WORDS = 8
  FIRST_SLOT_WITHIN = 1_024

  # frames: page number => frame; ruby: page number => true for pages of Ruby's heap
  attr_reader :frames, :ruby

  # @param pid [Integer] a process that this one may read
  def self.of(pid) = new(pid).tap(&:read)

  # @param file [String] written by `save`
  def self.load(file) = Marshal.load(File.binread(file))

  def initialize(pid)
    @pid = pid
    @frames = {}
    @ruby = {}
  end

  def read
    File.open("/proc/#{@pid}/pagemap", "rb") do |pagemap|
      File.open("/proc/#{@pid}/mem", "rb") do |memory|
        anonymous.each { |range| read_range(range, pagemap, memory) }
      end
    end
  end

  def save(file) = File.binwrite(file, Marshal.dump(self))

  # @param before [Pages] of the parent before the fork
  # @return [Hash{String => Integer}] bytes of pages shared, copied and gone since the fork, and of new ones, each for
  #   Ruby's heap pages ("ruby") and for the rest ("other"), mostly malloc's
  def since(before)
    counts = Hash.new(0)
    before.frames.each do |page, frame|
      state = { frame => "shared", nil => "gone" }.fetch(frames[page], "copied")
      counts["#{before.ruby[page] ? "ruby" : "other"}_#{state}_bytes"] += BYTES
    end
    frames.each_key do |page|
      counts["#{ruby[page] ? "ruby" : "other"}_new_bytes"] += BYTES unless before.frames.key?(page)
    end
    counts
  end

  private

  # Writable mappings without a file, the small stacks included.
  def anonymous
    File.readlines("/proc/#{@pid}/maps").filter_map do |line|
      addresses, permissions, _offset, _device, inode, = line.split(" ", 6)
      first, past = addresses.split("-").map { |text| text.to_i(16) }
      (first...past) if permissions.start_with?("rw") && inode == "0"
    end
  end

  def read_range(range, pagemap, memory)
    first = range.begin / BYTES
    pagemap.seek(first * 8)
    entries = pagemap.read((range.end / BYTES - first) * 8).to_s.unpack("Q*")
    entries.each_with_index { |entry, index| frames[first + index] = entry & FRAME if entry.anybits?(PRESENT) }
    start = (range.begin + HEAP_PAGE_BYTES - 1) / HEAP_PAGE_BYTES * HEAP_PAGE_BYTES
    start.step(range.end - HEAP_PAGE_BYTES, HEAP_PAGE_BYTES) do |address|
      mark(address) if frames.key?(address / BYTES) && heap_page?(memory, address)
    end
  end

  def mark(address) = (HEAP_PAGE_BYTES / BYTES).times { |index| ruby[(address / BYTES) + index] = true }

  def heap_page?(memory, address)
    descriptor = words(memory, address, 1)&.first
    return false unless descriptor&.positive? && (descriptor % 8).zero? && descriptor < 1 << 47

    words(memory, descriptor, DESCRIPTOR_WORDS)&.any? { |word| word > address && word <= address + FIRST_SLOT_WITHIN }
  end

  def words(memory, address, count)
    memory.sysseek(address)
    memory.sysread(count * 8).unpack("Q*")
  rescue SystemCallError, EOFError
    nil # not mapped: not a pointer
  end
end

Pages.of(Integer(ARGV.fetch(0))).save(ARGV.fetch(1)) if $PROGRAM_NAME == __FILE__
