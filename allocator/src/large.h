/* large.h - blocks of their own: runs of pages, and above CULET_LARGE_MAX mappings of the kernel's. */
#ifndef CULET_LARGE_H
#define CULET_LARGE_H

#include "types.h"

struct culet_large_stats {
    size_t large, large_bytes;
    size_t huge, huge_bytes;
};

/* A block of `bytes` (above CULET_SMALL_MAX, or aligned beyond what slabs can), its start a multiple of
 * `alignment`. Stores whether all of it reads as zero. NULL when out of memory. */
void *culet_large_get(size_t bytes, size_t alignment, bool *zeroed);

/* Frees the block at `start`; false when no such block is (any more) there. */
bool culet_large_put(struct culet_span *span, uintptr_t start);

/* Resizes in place or by moving pages; NULL when that is not possible, and nothing has changed. */
void *culet_large_resize(struct culet_span *span, size_t bytes);

/* Usable bytes of the block. */
static inline size_t culet_large_bytes(const struct culet_span *span)
{
    return ((const struct culet_large *)span)->bytes;
}

/* The run or huge block that holds an address, or NULL. */
struct culet_large *culet_large_containing(uintptr_t address);

/* In a forked child: ends the huge blocks whose freeing other threads had begun. */
void culet_large_finish_frees(void);

struct culet_large_stats culet_large_stats(void);

#endif
