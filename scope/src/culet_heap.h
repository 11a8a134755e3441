/* culet_heap.h - what the walker of culet's heap has found, and what its parts share: culet.c asks and tells,
 * culet_parts.c finds all that lies outside of segments, culet_segment.c walks one segment. */
#ifndef CULET_CULET_HEAP_H
#define CULET_CULET_HEAP_H

#include "../format.h"
#include "culet_self.h"
#include "sizes.h"

/* Of all regions. */
#define CULET_HEAP_ARENA 0

struct culet_heap {
    struct culet_selfmap self;
    struct culet_shape *shapes;
    const char *library;
    uint64_t threads;          /* that hold blocks */
    uint64_t segments;
    uint64_t used_bytes;   /* in segments */
    uint64_t cached_bytes; /* held by threads */
    uint64_t huge_bytes, huge_blocks;
    uint64_t kept_bytes; /* freed huge blocks whose pages are kept */
    uint64_t trim_bytes; /* what malloc_trim would return */
    uint64_t walk_ns;
    uint64_t strange; /* descriptors that are not what the pagemap said, and regions that overlap or are not mapped */
    bool restless;    /* it was never found at rest, and is not waited for any more */
    struct culet_sizes sizes;
};

/* The 8 bytes at `bytes`. */
uint64_t culet_heap_word(const unsigned char *bytes);

/* When the slice is over: the next one begins, at a moment when the page heap is whole. Returns whether it was. */
bool culet_heap_breathe(struct culet_scope *scope, struct culet_heap *heap);

/* A new region, with the states of its pages; NULL where there is one already (the process has mapped something new
 * there since the last slice), or nothing is mapped. May breathe. */
struct culet_place *culet_heap_place(struct culet_scope *scope, struct culet_heap *heap, const char *kind,
                                     uint64_t start, uint64_t end, bool whole);

/* The next chunk of a region, if it has any bytes. */
void culet_heap_chunk(struct culet_scope *scope, struct culet_place *place, uint64_t bytes, enum culet_block_state state);

/* Reads the lists of huge blocks, of freed ones that are kept, of descriptors and tables: in one slice, if they are not
 * uncommonly long. */
void culet_parts_list(struct culet_scope *scope, struct culet_heap *heap);

/* Makes the region of the next of them; false when there is none left. The process may have run since. */
bool culet_parts_next(struct culet_scope *scope, struct culet_heap *heap);

/* Walks the segment whose descriptor is at `address`. */
void culet_segment_walk(struct culet_scope *scope, struct culet_heap *heap, uint64_t address);

#endif
