/* format.h - the stream in which culet-scope tells what it found in a process. Little-endian.
 *
 *   16 bytes CULET_SCOPE_MAGIC | record | record | ... | the record 'E'
 *
 * A record is its type (one byte), the length of what follows (varint), and that many bytes. Readers skip types that
 * they do not know. Numbers in records are varints (LEB128: seven bits to a byte, the lowest first, the top bit set on
 * all but the last) unless said otherwise. A record about a mapping or region comes after the 'J' that introduces it.
 *
 *   'J'  one JSON object; its "kind" tells which, the list is below.
 *   'P'  pages of a mapping: its id; then runs until the record's end: count, one byte of CULET_PAGE_* bits.
 *        The runs cover the mapping from its start to its end.
 *   'F'  fill of a region: its id; then runs until the record's end: count, used bytes of this region in each of these
 *        pages. One entry for every kernel page that the region touches. Bytes of a page that are not used are free,
 *        or metadata (see regions that hold "metadata", and 'C').
 *   'C'  chunks of a region: its id; the offset of the first chunk from the region's start; then until the record's
 *        end, for one chunk after the other without gaps: (bytes / CULET_BLOCK_UNIT) << CULET_BLOCK_STATE_BITS | enum culet_block_state.
 *        Left out of the whole stream when there are more than --max-chunks.
 *   'S'  slabs of a region: its id; then for one stretch after the other from the region's start: its bytes, bytes of each
 *        of the blocks it is divided into. Instead of these 0: nothing there is given out; 1: blocks longer than any size
 *        class, each of its own length. What is left up to the region's end is as with 0.
 *   'R'  a Ruby heap page (none of an empty one that is kept): address, bytes of a slot, offset of the first slot, slots;
 *        then a bitmap, slot n is bit n & 7 of byte n / 8, set: live.
 *   'E'  the end: four bytes, CRC-32 (zlib's) of all bytes before this record's type.
 *
 * JSON objects, by "kind" (keys that end in _bytes are bytes, in _seconds seconds; addresses are decimal integers):
 *
 *   process    pid, name, title (that it gave itself; none: left out), program, page_bytes, bits,
 *              mode ("sliced", "stopped", "live"), threads, time, rss_bytes, pss_bytes, shared_bytes, private_dirty_bytes, swap_bytes: sums of all mappings
 *   thread     tid, name, stack_mapping (id or null)
 *   mapping    id, start, end, perms, offset, inode, path, rss_bytes, pss_bytes, shared_clean_bytes,
 *              shared_dirty_bytes, private_clean_bytes, private_dirty_bytes, swap_bytes, use, label
 *   allocator  name, library, level ("blocks" or "pages"), why
 *   arena      id, name, address, system_bytes, used_bytes, free_bytes, top_bytes, trim_bytes, broken, why
 *   region     id, arena (id or null), holds ("main", "heap", "mmapped", "slabs", "run", "large", "metadata", "ruby"),
 *              start, end, mapping (id of the one at its start); regions are disjoint
 *   malloc     arenas, heaps, used_bytes, free_resident_bytes, free_returned_bytes, mmapped_bytes, mmapped_chunks,
 *              metadata_bytes, tcache_bytes, fastbin_bytes, trim_bytes, pause_seconds (the longest), pauses,
 *              walk_seconds, chunks, used_resident_bytes, metadata_resident_bytes; glibc's too: paused_seconds (all
 *              pauses), free_swapped_bytes (part of free_returned_bytes: pages that are in swap).
 *              used_bytes are the arenas' used bytes with metadata_bytes among them, without mmapped_bytes;
 *              used_resident_bytes have mmapped chunks in them and no metadata. Of the pages of all regions of
 *              malloc: used_resident + free_resident + metadata_resident = the resident bytes.
 *   sizes      buckets: [[bytes, used_count, used_bytes, free_count, free_bytes], ...], bytes: the smallest chunk
 *   freeruns   buckets: [[pages, count, resident_pages], ...]: runs of `pages` (the least of the bucket) or more
 *              neighbouring pages without a used byte
 *   ruby       version (or null), page_bytes, pages, slots: [{slot_bytes, pages, live, free}], live_bytes, free_bytes,
 *              overhead_bytes, live_resident_bytes, free_resident_bytes, overhead_resident_bytes, transient_bytes
 *              (used of the transient heap that Ruby has up to 3.2), transient_resident_bytes, why.
 *              Ruby's pages are regions that hold "ruby", its transient heap is one that holds "transient".
 *   reading    what it took: pauses (count), paused_seconds (their sum), stopping_seconds (of these, until all threads had
 *              stopped), paused_cpu_seconds (the reader's processor time in them), cpu_seconds (its whole, to this record),
 *              median_pause_seconds, p95_pause_seconds, longest_pause_seconds, peak_rss_bytes (of the reader)
 *   problem    sentence
 *
 * Texts that came from the process (paths, names) are data: valid UTF-8, but anything may be in them. */
#ifndef CULET_SCOPE_FORMAT_H
#define CULET_SCOPE_FORMAT_H

#define CULET_SCOPE_MAGIC "culet-scope 1\n\0"
#define CULET_SCOPE_MAGIC_BYTES 16
/* A block's length in the record 'C' is in these units; the low bits of its number are its state. */
#define CULET_BLOCK_UNIT 16
#define CULET_BLOCK_STATE_BITS 2

enum culet_page_bits {
    CULET_PAGE_PRESENT = 1,
    CULET_PAGE_SWAPPED = 2,
    CULET_PAGE_EXCLUSIVE = 4, /* mapped by this process alone */
    CULET_PAGE_FILE = 8,      /* of a file, or of shared anonymous memory */
    CULET_PAGE_ZERO = 32      /* the kernel's page of zeroes: can be read, is nobody's memory; PRESENT is not set */
};

enum culet_block_state {
    CULET_BLOCK_USED,
    CULET_BLOCK_FREE,
    CULET_BLOCK_CACHED,  /* freed, and kept by a thread or an arena for its next requests */
    CULET_BLOCK_OVERHEAD /* the allocator's own, or unknown */
};

#endif
