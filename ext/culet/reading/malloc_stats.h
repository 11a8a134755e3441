/* reading/malloc_stats.h - Culet.stats. */
#pragma once

#include <ruby.h>

#include <stdint.h>

/* The active malloc's own counts. Returns a Hash of Integers, in blocks or bytes. Under culet and glibc:
 *   heap_bytes:   address space of the heap without large blocks
 *   used_bytes:   of these, in blocks that the program holds
 *   free_bytes:   of these, free, resident or returned
 *   large_blocks:, large_bytes: blocks with a mapping of their own
 *   arenas:       number of arenas; missing under glibc if it does not tell
 * Under culet also every other member of struct culet_stats (allocator/src/stats.h) under its name, and
 *   classes:      an Array with a Hash per size class in use: block_bytes, slabs, used, free, cached
 * nil under an allocator without such a call. */
VALUE culet_stats_of_malloc(VALUE self);

/* Resident bytes of the active malloc: in blocks that the program holds; free; of its own (culet and jemalloc). Where the
 * kernel does not tell what is resident, what may be. Blocks of glibc with a mapping of their own count as resident, and
 * blocks of jemalloc and tcmalloc. */
struct culet_malloc_sums {
    uint64_t used, free, metadata;
};

/* In any thread, under culet, glibc, jemalloc and tcmalloc. Takes milliseconds in a large heap. Returns 0 under other
 * allocators. */
int culet_malloc_sums(struct culet_malloc_sums *sums);

/* The totals alone, for readers that allocate little: an Array of the bytes that the program uses, with large blocks;
 * that are free; of these, returned to the kernel; cached; returned since the start; the number of arenas; and, as of
 * culet_malloc_sums, used, free and metadata. nil for what the allocator does not count, or in place of the Array. */
VALUE culet_malloc_totals(VALUE self);

/* Bytes in blocks that the program holds, under culet, glibc, jemalloc and tcmalloc. Two readings by one thread are
 * comparable to the byte: they do not depend on what is in that thread's cache. In any thread, and in a forked copy. Takes
 * milliseconds in a large heap. Returns 0 under other allocators. */
int culet_malloc_in_use_bytes(uint64_t *bytes);

/* These bytes, or nil. Makes no object, for less than 4 EiB. With the GVL. */
VALUE culet_malloc_in_use(VALUE self);
