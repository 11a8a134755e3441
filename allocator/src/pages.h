/* pages.h - the page heap: runs of pages out of segments, lowest address first, and what it keeps.
 *
 * Freed pages stay resident ("dirty") until the scavenger finds that they have stayed free, or until a
 * trim. Where there is no scavenger they go back once there are more of them than CULET_KEEP_PAGES_MIN and CULET_KEEP_PAGES_SHARE
 * (pages.c) allow; and while there are more than that, some go back as the heap grows (CULET_GROWTH_RATIO). A segment
 * without a used page is unmapped when its pages would go back, unless it is the only spare one. */
#ifndef CULET_PAGES_H
#define CULET_PAGES_H

#include "meta.h"
#include "types.h"

extern struct culet_lock culet_pages_lock;

struct culet_pages_stats {
    size_t segments;
    size_t used;  /* pages */
    size_t free;  /* pages, resident or not */
    size_t dirty; /* of the free ones, those that may be resident */
    size_t huge_cached; /* pages of freed huge blocks that are kept (huge_cache.h); not among the free ones */
    size_t purged_bytes; /* given back since the start */
    size_t purges;       /* times that something was */
};

/* All of these expect the pages lock to be held.
 *
 * culet_pages_get: a run of `pages`, its start a multiple of `alignment` (a power of two, at least a
 * page). Stores the segment, and whether every byte is known to be zero. Returns 0 when out of memory. */
uintptr_t culet_pages_get(size_t pages, size_t alignment, uint32_t *segment, bool *zeroed);

/* Frees a run. `dirty`: those of its first 64 pages that may be resident; later ones are taken to be. */
void culet_pages_put(uint32_t segment, uintptr_t start, size_t pages, uint64_t dirty);

/* Lengthens a run in place; false when the pages behind it are not free. */
bool culet_pages_extend(uint32_t segment, uintptr_t start, size_t pages, size_t more);

/* Returns the stock and dirty pages to the kernel until at most `keep` are left of both, or about `most` have
 * been returned.
 * Returns bytes given back. */
size_t culet_pages_purge(size_t keep, size_t most);

/* The same for a heap that tidies up: does not count as what calls for a scavenger. */
size_t culet_pages_reclaim(size_t keep);

/* Unmaps the stock and every segment without a used page: the kernel refuses a mapping. Returns whether there was one. */
bool culet_pages_release_spare(void);

/* culet_meta_get; where the kernel refuses it memory the segments that are only kept are given up first. The pages lock
 * is not held. */
void *culet_pages_descriptor(enum culet_meta kind);

/* Notes bytes that went back from inside slabs. */
void culet_pages_count_purged(size_t bytes);

/* Begins to watch the dirty pages and the stock. */
void culet_pages_begin_interval(void);

/* Granules of the stock, and dirty ones that the kernel would take; with `since`, those that there were all the time since
 * culet_pages_begin_interval. */
size_t culet_pages_idle(bool since);

struct culet_pages_stats culet_pages_stats(void);

/* The start of segment `index`; 0 where there is none, CULET_PAGES_END behind the last. */
#define CULET_PAGES_END UINTPTR_MAX
uintptr_t culet_pages_segment(uint32_t index);

/* Aborts unless the page heap's invariants hold. */
void culet_pages_check(void);

#endif
