# frozen_string_literal: true

require "json"
require "zlib"
require "culet/scope/varints"

# Streams such as culet-scope writes, of processes that there are none of at hand: of 10 GB, or with a name that is
# markup. Deterministic: the same seed makes the same bytes.
class Synthetic
  PAGE = 4096

  attr_reader :records

  # @param name [String] the process's
  # @param sizes [Object] in the place of a histogram
  # @param page_bytes [Integer] the kernel's
  # @param arena_name [String, nil] what all arenas but the main one are called
  def initialize(name: "ruby", seed: 1, arena_name: nil, page_bytes: PAGE, sizes: nil)
    @name = name
    @arena_name = arena_name
    @page_bytes = page_bytes
    @sizes = sizes
    @random = Random.new(seed)
    @records = []
    @rss = 0
    @malloc = Hash.new(0)
    @mappings = @regions = 0
    @arenas = Hash.new { |all, id| all[id] = { "used_bytes" => 0, "free_bytes" => 0, "system_bytes" => 0 } }
  end

  # A heap that one arena has, of which every page is told: a share of them is full, a share is part full, the rest is
  # free, and of those a share is returned.
  #
  # @param chunks [Boolean] whether its blocks are told one by one
  def heap(arena:, start:, pages:, kind: "heap", chunks: false, returned: 0.3, shared: 0.0)
    fills = Array.new(pages) { fill }
    bits = fills.map do |used|
      if used.zero? && @random.rand < returned
        0
      else
        (@random.rand < shared ? 1 : 5)
      end
    end
    mapping = map(start: start, pages: pages, bits: bits, use: "malloc")
    region(arena: arena, kind: kind, start: start, pages: pages, mapping: mapping, fills: fills, bits: bits, chunks: chunks)
  end

  # Ruby's pages of 64 KiB, each with slots of one size.
  def ruby(start:, count:, slot_bytes: 40, live: 0.7)
    pages = count * 16
    mapping = map(start: start, pages: pages, bits: [5] * pages, use: "ruby")
    slots = (65_536 - 16) / slot_bytes
    payloads = Array.new(count) do |index|
      bitmap = Array.new(slots) { @random.rand < live ? 1 : 0 }
      varints(start + (index * 65_536), slot_bytes, 16, slots) + [bitmap.join].pack("b*")
    end
    all_live = payloads.sum { |payload| payload[-((slots + 7) / 8)..].unpack1("b*").count("1") } * slot_bytes
    object("region", "id" => @regions, "arena" => nil, "holds" => "ruby", "start" => start, "end" => start + (pages * PAGE), "mapping" => mapping)
    @records << ["F", varints(@regions, pages, PAGE)]
    @regions += 1
    payloads.each { |payload| @records << ["R", payload] }
    all = count * slots * slot_bytes
    object("ruby", "version" => "3.4.1", "page_bytes" => 65_536, "pages" => count,
                   "slots" => [{ "slot_bytes" => slot_bytes, "pages" => count, "live" => all_live / slot_bytes,
                                 "free" => (all - all_live) / slot_bytes }],
                   "live_bytes" => all_live, "free_bytes" => all - all_live, "overhead_bytes" => (pages * PAGE) - all,
                   "live_resident_bytes" => all_live, "free_resident_bytes" => all - all_live,
                   "overhead_resident_bytes" => (pages * PAGE) - all, "transient_bytes" => 0,
                   "transient_resident_bytes" => 0, "why" => nil)
  end

  # A mapping.
  #
  # @param bits [Array<Integer>] of each page
  # @param runs [Array<Integer>] the same as it stands in the stream
  def map(start:, pages:, use:, bits: [1] * pages, path: "", label: nil,
          runs: bits.chunk_while { |one, other| one == other }.flat_map { |run| [run.size, run.first] })
    resident = bits.count { |one| one & 1 == 1 } * @page_bytes
    @rss += resident
    object("mapping", "id" => @mappings, "start" => start, "end" => start + (pages * @page_bytes), "perms" => "rw-p",
                      "offset" => 0, "inode" => 0, "path" => path,
                      "rss_bytes" => resident, "pss_bytes" => resident, "shared_clean_bytes" => 0, "shared_dirty_bytes" => 0, "private_clean_bytes" => 0,
                      "private_dirty_bytes" => resident, "swap_bytes" => 0, "use" => use, "label" => label)
    @records << ["P", varints(@mappings, *runs)]
    @mappings += 1
    @mappings - 1
  end

  # A region as it is: its runs as they stand in the stream, pages and bytes in use of each one after the other.
  def part(arena:, kind:, start:, bytes:, mapping:, runs:)
    object("region", "id" => @regions, "arena" => arena, "holds" => kind, "start" => start, "end" => start + bytes, "mapping" => mapping)
    @records << ["F", varints(@regions, *runs)]
    @regions += 1
    @arenas[arena]["system_bytes"] += bytes if arena
  end

  # A page of Ruby's of which every slot is live.
  def full_ruby_page(address:, slot_bytes:, slots:)
    @records << ["R", varints(address, slot_bytes, 0, slots) + ("\xff".b * ((slots + 7) / 8))]
  end

  # A sentence that the reader has to say.
  def problem(sentence) = object("problem", "sentence" => sentence)

  # @return [String] the stream
  def to_s
    out = +"culet-scope 1\n\0\0".b
    all = head + @records
    all.each { |type, payload| out << type << varints(payload.bytesize) << payload }
    sum = Zlib.crc32(out)
    out << "E" << varints(4) << [sum].pack("V")
  end

  # @return [String] the snapshot file
  def snapshot = "culet-snapshot 1\n".b << Zlib.gzip(to_s, level: Zlib::BEST_SPEED)

  private

  # Half of all pages are part full, as after a burst.
  def fill
    case @random.rand
    when 0...0.3 then PAGE
    when 0.3...0.5 then 0
    else @random.rand(1..255) * 16
    end
  end

  def region(arena:, kind:, start:, pages:, mapping:, fills:, bits:, chunks:)
    object("region", "id" => @regions, "arena" => arena, "holds" => kind, "start" => start, "end" => start + (pages * PAGE), "mapping" => mapping)
    @records << ["F", varints(@regions, *fills.chunk_while { |one, other| one == other }.flat_map { |run| [run.size, run.first] })]
    @records << ["C", varints(@regions, 0, *blocks(fills))] if chunks
    @regions += 1
    @malloc["heaps"] += 1
    account(arena, fills, bits)
  end

  # Each page: its used bytes in blocks of up to 512 bytes, then one free block.
  def blocks(fills)
    fills.flat_map do |used|
      sizes = []
      left = used
      while left.positive?
        size = [left, @random.rand(1..32) * 16].min
        sizes << ((size / 16) << 2)
        left -= size
      end
      used < PAGE ? [*sizes, (((PAGE - used) / 16) << 2) | 1] : sizes
    end
  end

  def account(arena, fills, bits)
    used = fills.sum
    free = (fills.size * PAGE) - used
    returned = bits.count { |one| (one & 1).zero? } * PAGE
    @malloc["used_bytes"] += used
    @malloc["free_resident_bytes"] += free - returned
    @malloc["free_returned_bytes"] += returned
    @arenas[arena]["used_bytes"] += used
    @arenas[arena]["free_bytes"] += free
    @arenas[arena]["system_bytes"] += fills.size * PAGE
  end

  def head
    was = @records
    @records = []
    object("process", "pid" => 4242, "name" => @name, "program" => "/usr/bin/ruby3.1", "page_bytes" => @page_bytes,
                      "bits" => 64, "mode" => "sliced", "threads" => 8, "time" => 1_790_000_000.5, "rss_bytes" => @rss,
                      "pss_bytes" => @rss, "shared_bytes" => 0, "private_dirty_bytes" => @rss, "swap_bytes" => 0)
    object("allocator", "name" => "glibc", "library" => "/lib/x86_64-linux-gnu/libc.so.6", "level" => "blocks", "why" => nil)
    @arenas.each do |id, sums|
      object("arena", "id" => id, "name" => id.zero? ? "main" : @arena_name || "thread #{id}", "address" => 4096 * id,
                      "top_bytes" => 0, "trim_bytes" => 0, "broken" => false, "why" => nil, **sums)
    end
    object("malloc", "arenas" => @arenas.size, "heaps" => 0, "used_bytes" => 0, "free_resident_bytes" => 0,
                     "free_returned_bytes" => 0, "mmapped_bytes" => 0, "mmapped_chunks" => 0, "metadata_bytes" => 0,
                     "tcache_bytes" => 0, "fastbin_bytes" => 0, "trim_bytes" => 123_456, "pause_seconds" => 0.0123,
                     "pauses" => 3, "walk_seconds" => 0.5,
                     "chunks" => 0, "used_resident_bytes" => @malloc["used_bytes"], "metadata_resident_bytes" => 0, **@malloc)
    sizes = @sizes || (4..16).map do |power|
      [1 << power, 1000 >> (power - 4), (1 << power) * (1000 >> (power - 4)),
       300 >> (power - 4), (1 << power) * (300 >> (power - 4))]
    end
    object("sizes", "buckets" => sizes)
    @records
  ensure
    @records = was
  end

  def object(kind, fields) = @records << ["J", JSON.generate({ "kind" => kind, **fields }).b]

  def varints(*numbers) = Culet::Scope::Varints.append("".b, *numbers)
end
