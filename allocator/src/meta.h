/* meta.h - memory for the allocator's descriptors, apart from all blocks.
 *
 * Descriptors are cut from 64 KiB chunks, which are never returned; an unused descriptor is kept for the next one of
 * its kind (types.h: type-stable). */
#pragma once

#include "types.h"

/* The first line of a chunk links it to the previous one, for readers that visit all. */
#define CULET_META_CHUNK ((size_t)64 << 10)
struct culet_chunk {
    struct culet_chunk *next;
};

enum culet_meta { CULET_META_SLAB, CULET_META_LARGE, CULET_META_SEGMENT, CULET_META_ARENA, CULET_META_KINDS };

/* A descriptor of that kind, with the contents of its last use (zeros when new), or NULL. */
void *culet_meta_get(enum culet_meta kind);
void culet_meta_put(enum culet_meta kind, void *descriptor);

/* Bytes mapped for descriptors. */
size_t culet_meta_bytes(void);

extern struct culet_lock culet_meta_lock;
