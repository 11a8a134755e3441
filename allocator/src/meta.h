/* meta.h - memory for the allocator's own descriptors, apart from all blocks.
 *
 * Cut from 64 KiB chunks that are never given back; a descriptor that is no longer needed is kept for the
 * next of its kind. */
#ifndef CULET_META_H
#define CULET_META_H

#include "types.h"

/* What the kernel is asked for at a time. A chunk's first line links it to the one before, for whoever looks for all. */
#define CULET_META_CHUNK ((size_t)64 << 10)
struct culet_chunk {
    struct culet_chunk *next;
};

enum culet_meta { CULET_META_SLAB, CULET_META_LARGE, CULET_META_SEGMENT, CULET_META_CACHE, CULET_META_KINDS };

/* A descriptor of that kind, its contents what its last use left (zeros when new), or NULL. */
void *culet_meta_get(enum culet_meta kind);
void culet_meta_put(enum culet_meta kind, void *descriptor);

/* Bytes taken from the kernel for descriptors. */
size_t culet_meta_bytes(void);

extern struct culet_lock culet_meta_lock;

#endif
