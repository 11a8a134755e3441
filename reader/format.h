/* format.h - the stream that culet-scope writes about one process. Little-endian.
 *
 *   16 bytes CULET_STREAM_MAGIC | record | record | ... | record 'E'
 *
 * A record is its type (one byte), the length of its content (varint) and the content. Readers skip unknown types.
 * Numbers are varints (LEB128: seven bits per byte, lowest first, the top bit set in all bytes but the last) unless
 * noted. A record about a mapping or region follows the JSON record that introduces it.
 *
 *   'J'  one JSON object; its "kind" is one of the list below.
 *   'P'  pages of a mapping: its id; then runs until the end of the record: count, one byte of CULET_PAGE_* bits. The
 *        runs cover the whole mapping.
 *   'F'  fill of a region: its id; then runs until the end of the record: count, used bytes of this region in each of
 *        these pages. The runs cover all kernel pages that the region touches. The other bytes of a page are free, or
 *        metadata (see regions that hold "metadata", and 'C').
 *   'C'  blocks of a region: its id; the offset of the first block from the start of the region; then, until the end
 *        of the record, for each block, without gaps: (bytes / CULET_BLOCK_UNIT) << CULET_BLOCK_STATE_BITS | enum
 *        culet_block_state. Left out of the whole stream when there are more than --max-chunks blocks.
 *   'R'  a page of Ruby's heap (empty pages have none): address, bytes of a slot, offset of the first slot, slots;
 *        then a bitmap: bit n & 7 of byte n / 8 is set if slot n is live.
 *   'E'  the end: four bytes, CRC-32 (as zlib's) of all bytes before the type of this record.
 *
 * JSON objects by "kind". Keys that end in _bytes are bytes, in _seconds seconds; addresses are decimal integers.
 *
 *   process    pid, name, title (set by the process itself; optional), program, page_bytes, bits, mode ("sliced",
 *              "stopped", "live"), threads, time; rss_bytes, pss_bytes, shared_bytes, private_dirty_bytes, swap_bytes:
 *              sums over all mappings
 *   mapping    id, start, end, perms, offset, inode, path, rss_bytes, pss_bytes, shared_clean_bytes,
 *              shared_dirty_bytes, private_clean_bytes, private_dirty_bytes, swap_bytes, use, label
 *   allocator  name, library, level ("blocks" or "pages"), why
 *   arena      id, name, address, system_bytes, used_bytes, free_bytes, top_bytes, trim_bytes, broken, why
 *   region     id, arena (id or null), holds ("main", "heap", "mmapped", "slabs", "large", "metadata", "ruby",
 *              "transient"), start, end, mapping (id of the mapping at its start). Regions do not overlap.
 *   malloc     arenas, heaps, used_bytes, free_resident_bytes, free_returned_bytes, mmapped_bytes, mmapped_chunks,
 *              metadata_bytes, tcache_bytes, tcache_mmapped_bytes (part of tcache_bytes and of mmapped_bytes),
 *              fastbin_bytes, trim_bytes, pause_seconds (the longest pause), pauses,
 *              paused_seconds (all pauses), walk_seconds, chunks, used_resident_bytes, metadata_resident_bytes,
 *              free_swapped_bytes (part of free_returned_bytes: pages in swap); culet also: kept_bytes. used_bytes is
 *              the sum of the arenas' used bytes, including metadata_bytes, without mmapped_bytes. used_resident_bytes
 *              includes mmapped chunks and excludes metadata. Over the pages of all regions of malloc: used_resident +
 *              free_resident + metadata_resident = resident bytes.
 *   sizes      buckets: [[bytes, used_count, used_bytes, free_count, free_bytes], ...]; bytes: the smallest size
 *   ruby       version (or null), page_bytes, pages, slots: [{slot_bytes, pages, live, free}], old_objects (how many
 *              the collector counts as old), minor_gcs, major_gcs (how many collections there were; both missing where
 *              that is unknown), live_bytes, free_bytes, overhead_bytes, live_resident_bytes,
 *              free_resident_bytes, overhead_resident_bytes, transient_bytes (used bytes of the transient heap, up to
 *              Ruby 3.2), transient_resident_bytes, why.
 *   reading    pauses (count), paused_seconds (their sum), stopping_seconds (the part until all threads had stopped),
 *              paused_cpu_seconds (processor time of the reader in pauses), cpu_seconds (its total until this record),
 *              median_pause_seconds, p95_pause_seconds, longest_pause_seconds, peak_rss_bytes (of the reader)
 *   problem    sentence
 *
 * Paths and names come from the process: valid UTF-8, but otherwise arbitrary. */
#pragma once

#define CULET_STREAM_MAGIC "culet-scope 1\n\0"
#define CULET_STREAM_MAGIC_BYTES 16

enum culet_record_type {
    CULET_RECORD_JSON = 'J',
    CULET_RECORD_PAGES = 'P',
    CULET_RECORD_FILL = 'F',
    CULET_RECORD_BLOCKS = 'C',
    CULET_RECORD_RUBY_PAGE = 'R',
    CULET_RECORD_END = 'E'
};

enum culet_page_bits {
    CULET_PAGE_PRESENT = 1,
    CULET_PAGE_SWAPPED = 2,
    CULET_PAGE_EXCLUSIVE = 4, /* mapped by this process alone */
    CULET_PAGE_FILE = 8,      /* of a file, or of shared anonymous memory */
    CULET_PAGE_ZERO = 32      /* the kernel's zero page: readable, in nobody's RSS; PRESENT is not set */
};

/* Record 'C': the unit of a block's length, and the low bits that hold its state. */
#define CULET_BLOCK_UNIT 16
#define CULET_BLOCK_STATE_BITS 2

enum culet_block_state {
    CULET_BLOCK_USED,
    CULET_BLOCK_FREE,
    CULET_BLOCK_CACHED,  /* freed, and kept by a thread or an arena for its next requests */
    CULET_BLOCK_OVERHEAD /* the allocator's own, or unknown */
};
