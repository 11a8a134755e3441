# frozen_string_literal: true

require "etc"

# The anonymous pages of a process, each with the number of the frame of memory behind it (pagemap(5), which shows it
# to root), and whether it belongs to one of Ruby's heap pages or to something else, malloc above all. A page that
# still has the frame it had before the fork is shared; one with another frame was copied.
#
#   ruby pages.rb PID FILE    writes the pages of a process, for `Pages.load`
class Pages
  BYTES = Etc.sysconf(Etc::SC_PAGESIZE)
  HEAP_PAGE_BYTES = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE, 65_536)
  PRESENT = 1 << 63
  FRAME = (1 << 55) - 1
  # A heap page begins with the address of its descriptor, and one of the descriptor's first words is the address of
  # the first slot, just behind the page's beginning (struct heap_page of gc.c).
  DESCRIPTOR_WORDS = 8
  FIRST_SLOT_WITHIN = 1_024

  # frames: page number => frame; ruby: page number => true for pages of Ruby's heap
  attr_reader :frames, :ruby

  # @param pid [Integer] a process that this one may read
  # @return [Pages]
  def self.of(pid) = new(pid).tap(&:read)

  # @param file [String] written by `save`
  # @return [Pages]
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

  # @param file [String]
  def save(file) = File.binwrite(file, Marshal.dump(self))

  # @param before [Pages] of the parent before the fork
  # @return [Hash{String => Integer}] bytes: of what was there before the fork what is shared, copied and gone, and
  #   what is new, each for Ruby's heap pages and for the rest
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

  # Written mappings without a file; the stacks among them are small.
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
    start.step(range.end - HEAP_PAGE_BYTES, HEAP_PAGE_BYTES) { |address| mark(address) if frames.key?(address / BYTES) && heap_page?(memory, address) }
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
    nil # not mapped: no pointer after all
  end
end

Pages.of(Integer(ARGV.fetch(0))).save(ARGV.fetch(1)) if $PROGRAM_NAME == __FILE__
