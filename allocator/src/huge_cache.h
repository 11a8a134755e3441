/* huge_cache.h - the pages of freed huge blocks, for the next huge block or the page heap's next segment. Faulting in a
 * new page costs 3.2 us, moving one by mremap 0.2.
 *
 * An extent is a range of addresses, all of which may be resident. Extents with the same mapping number were mapped by
 * one call, so adjacent ones can become one block again, and mremap accepts them as one mapping.
 *
 *     sum of the extents == culet_huge_cache_bytes(); disjoint; whole kernel pages
 *
 * All functions expect the pages lock to be held. */
#pragma once

#include "reclaim_policy.h"
#include "types.h"

struct culet_extent {
    uintptr_t start;
    size_t bytes; /* whole kernel pages */
    uint32_t mapping;
};

/* A number for a new mapping. */
uint32_t culet_huge_cache_new_mapping(void);

/* Tells the cache how many bytes of huge blocks there are. */
void culet_huge_cache_set_live(size_t bytes);

/* The cached bytes that must go back: the huge blocks and the cache may have together CULET_HUGE_CACHE_BYTES more than the
 * blocks had at any time since the interval began. */
size_t culet_huge_cache_excess(void);

void culet_huge_cache_put(struct culet_extent extent);

/* Takes `bytes` (whole kernel pages) from the smallest extent that has them; false if none has. */
bool culet_huge_cache_take(size_t bytes, struct culet_extent *taken);

/* Takes the largest extent; false if there is none. */
bool culet_huge_cache_take_largest(struct culet_extent *taken);

/* Whether culet_huge_cache_take would succeed. */
bool culet_huge_cache_has(size_t bytes);

/* Takes the `more` bytes behind `block`; false if they are not cached, or not of its mapping. */
bool culet_huge_cache_extend(const struct culet_extent *block, size_t more);

/* Unmaps about `bytes`, the oldest first. Returns how many: fewer if there are no more. */
size_t culet_huge_cache_purge(size_t bytes);

/* For a purge without the pages lock. Begin takes at most `bytes` of the oldest extent out of the cache and stores them;
 * false if there are none, or too many such purges at the same time. The caller may then have the kernel empty the
 * extent. End unmaps it. In a forked child, finish_purges does that for the threads it does not have. */
bool culet_huge_cache_begin_purge(size_t bytes, struct culet_extent *taken);
void culet_huge_cache_end_purge(const struct culet_extent *taken);
void culet_huge_cache_finish_purges(void);

/* Moves cached pages over the mapping [start, start + bytes), from its start on. Stores the bytes moved.
 * False if the kernel refused in a way that left a hole in the mapping. */
bool culet_huge_cache_move(uintptr_t start, size_t bytes, size_t *moved);

/* Bytes in the cache. */
size_t culet_huge_cache_bytes(void);

/* Starts an interval; the least number of cached bytes since. */
void culet_huge_cache_begin_interval(void);
size_t culet_huge_cache_low_water(void);

/* Aborts unless the invariant above holds. */
void culet_huge_cache_check(void);
