/* huge_cache.h - the pages of freed huge blocks, which are kept for a moment: the next huge block gets them, or the page
 * heap's next segment. A page that the kernel has to give, clear and take back costs 3.2 us; one moved by mremap 0.2.
 *
 * An extent is a range of addresses, maybe resident as a whole. Extents of one mapping number were one mapping of the
 * kernel's once, so that what lies side by side can be one block again, and mremap takes it as one.
 *
 * All of these expect the pages lock to be held. */
#ifndef CULET_HUGE_CACHE_H
#define CULET_HUGE_CACHE_H

#include "types.h"

/* No more bytes than this are ever kept: they are returned under the lock, for which a thread should not wait longer
 * than about 2 ms. */
#define CULET_HUGE_CACHE_BYTES_MAX ((size_t)16 << 20)

/* Nor more extents: few, since a search looks at all of them. */
#define CULET_HUGE_CACHE_EXTENTS 32

struct culet_extent {
    uintptr_t start;
    size_t bytes; /* whole pages of the kernel's */
    uint32_t mapping;
};

/* A number for a new mapping. */
uint32_t culet_huge_cache_new_mapping(void);

/* Keeps an extent of CULET_HUGE_CACHE_BYTES_MAX bytes at the most; older ones are unmapped as far as there is no room. */
void culet_huge_cache_put(struct culet_extent extent);

/* Takes `bytes` (whole pages) out of the smallest extent that holds them; false when none does. */
bool culet_huge_cache_take(size_t bytes, struct culet_extent *taken);

/* Takes the largest extent as it is; false when there is none. */
bool culet_huge_cache_take_largest(struct culet_extent *taken);

/* Whether culet_huge_cache_take would find so many bytes. */
bool culet_huge_cache_has(size_t bytes);

/* Takes the `more` bytes behind `block`; false when they are not kept, or not of its mapping. */
bool culet_huge_cache_extend(const struct culet_extent *block, size_t more);

/* Unmaps about `bytes`, the longest kept first. Returns how many: fewer where there are no more. */
size_t culet_huge_cache_purge(size_t bytes);

/* Moves what is kept over the mapping [start, start + bytes), from its start on. Stores how many bytes were moved.
 * False when the kernel refused in a way that left a hole in the mapping. */
bool culet_huge_cache_move(uintptr_t start, size_t bytes, size_t *moved);

/* Bytes that are kept now. */
size_t culet_huge_cache_bytes(void);

/* Begins to watch what is kept; the least that was kept all the time since. */
void culet_huge_cache_begin_interval(void);
size_t culet_huge_cache_low_water(void);

/* Aborts unless the extents are whole pages, disjoint, and add up. */
void culet_huge_cache_check(void);

#endif
