/* culet_heap.h - what is known of culet's heap, its slices, and the steps of its walker.
 *
 *   culet_selfmap    finds the library's record of itself (allocator/src/selfmap.h)
 *   culet_extents    what lies outside of segments: huge blocks, kept extents, descriptors, tables
 *   culet_segment    one segment: slabs, large blocks, free pages; with culet_slab
 *   culet_walker     runs them one after the other, and writes the records */
#pragma once

#include "culet/culet_selfmap.h"
#include "regions/histogram.h"

/* The id of the only arena. */
#define CULET_HEAP_ARENA 0

enum culet_extent_kind { CULET_EXTENT_HUGE, CULET_EXTENT_FREED_HUGE, CULET_EXTENT_KEPT, CULET_EXTENT_METADATA };

/* A region to be made. */
struct culet_extent {
    uint64_t start, end;
    enum culet_extent_kind kind;
};

/* The target of a segment's entries. */
struct culet_segment_item {
    uint32_t page;       /* of the selfmap's page_bytes */
    uint32_t pages;      /* with this entry: all of a slab, one of a large block */
    uint64_t descriptor; /* address */
    bool is_slab;
};

/* Buffers for one segment at a time. */
struct culet_segment_buffers {
    struct culet_segment_item *items;
    uint64_t *entries;
    uint64_t *addresses;
    unsigned char *descriptors; /* of a batch of items; then the same again, as they are read */
    bool *got;
};

struct culet_heap {
    struct culet_selfmap self;
    struct culet_shape *shapes;
    const char *library;
    uint64_t segments;
    uint64_t used_bytes; /* in segments */
    uint64_t huge_bytes, huge_blocks;
    uint64_t kept_bytes;   /* freed huge blocks whose pages are kept */
    uint64_t trim_bytes;   /* returned by malloc_trim */
    uint64_t inconsistent; /* descriptors that differ from the pagemap; regions that overlap or are not mapped */
    bool always_locked;    /* the page heap was locked in all tries: no further waits */
    struct culet_histogram sizes;
    struct culet_extent *extents;
    size_t extent_count, extent_room, extents_done;
    struct culet_segment_buffers buffers;
};

/* Pauses at a moment when no thread is changing the page heap. In live mode there may be none. */
void culet_heap_pause(struct culet_reading *reading, struct culet_heap *heap);

/* If the slice is over: begins the next one in the same way. Returns whether it did. */
bool culet_heap_yield(struct culet_reading *reading, struct culet_heap *heap);

/* Adds a region with the states of its pages. Returns NULL if it overlaps another one (the process has mapped
 * something new since the last slice) or is not mapped. May yield. */
struct culet_region *culet_heap_new_region(struct culet_reading *reading, struct culet_heap *heap, const char *kind,
                                           uint64_t start, uint64_t end, bool full);

/* Adds the next block of a region, if it has any bytes. */
void culet_heap_add_block(struct culet_reading *reading, struct culet_region *region, uint64_t bytes,
                          enum culet_block_state state);

/* Reads the lists of huge blocks, kept extents, descriptors and tables: in one slice unless they are very long. */
void culet_extents_list(struct culet_reading *reading, struct culet_heap *heap);

/* Makes the next listed region; returns false if none is left. The process may have run since. */
bool culet_extents_next(struct culet_reading *reading, struct culet_heap *heap);

/* Walks the segment whose descriptor is at `address`. */
void culet_segment_walk(struct culet_reading *reading, struct culet_heap *heap, uint64_t address);
