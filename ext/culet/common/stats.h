/* common/stats.h - Culet.stats. */
#ifndef CULET_EXTENSION_STATS_H
#define CULET_EXTENSION_STATS_H

#include <ruby.h>

/*
 * What malloc itself counts. Returns a Hash of Integers, in blocks or bytes. Under culet and under glibc:
 *   heap_bytes:   address space of the heap, large blocks aside
 *   used_bytes:   of these, in blocks that the program holds
 *   free_bytes:   of these, free, whether resident or returned
 *   large_blocks:, large_bytes: blocks with a mapping of their own
 * Under culet also every other member of struct culet_stats (allocator/src/stats.h) by its name there, and
 *   classes:      an Array with one Hash per size class in use: block_bytes, slabs, used, free, cached
 * nil under an allocator that has no such call.
 */
VALUE culet_stats_of_malloc(VALUE self);

#endif
