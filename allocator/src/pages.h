/* pages.h - the page heap: ranges of pages out of segments, lowest address first, and the free pages it keeps resident.
 *
 *     used + free == segments * CULET_SEGMENT_PAGES;  dirty <= free
 *     longest[i] >= the longest free range of segment i
 *     no segment below lowest[n] has a free range of n pages, for n up to CULET_SLAB_PAGES; lowest[n] <= lowest[n + 1]
 *     pages with the marks of used and of dirty ones are being purged; they count as free
 *
 * When dirty pages go back to the kernel: reclaim_policy.h. A wholly free segment is unmapped when its pages would go
 * back, unless it is the only one. */
#pragma once

#include "meta.h"
#include "types.h"

extern struct culet_lock culet_pages_lock;

/* Pages that were handed out and not resident before, since the user of the number (purge.c) took it back. */
extern _Atomic size_t culet_pages_grown;

/* Whether the calling thread returns memory to the kernel that is marked as being returned. It holds no lock then, or is
 * about to take the pages lock. */
extern _Thread_local bool culet_pages_returning __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct culet_pages_stats {
    size_t segments;
    size_t used;         /* pages */
    size_t free;         /* pages, resident or not */
    size_t dirty;        /* of the free pages, those that may be resident */
    size_t huge_cached;  /* pages in the huge-block cache; not among the free ones */
    size_t purged_bytes; /* returned to the kernel since the start */
    size_t purges;       /* times that memory was returned */
};

/* All functions expect the pages lock to be held, unless they say otherwise.
 *
 * culet_pages_get: a range of `pages`, its start a multiple of `alignment` (a power of two, at least a page). Stores
 * the segment, and whether every byte is known to be zero. Returns 0 when out of memory. May release the lock before it
 * takes the range, to purge or to wait.
 *
 * If the only such range may be among pages that another thread is purging, this waits for it:
 * CULET_PURGE_WAIT_US before another segment is mapped, and without a bound when the kernel refuses that. */
uintptr_t culet_pages_get(size_t pages, size_t alignment, uint32_t *segment, bool *zeroed);

/* Frees a range. `dirty`: mask of those of its first 64 pages that may be resident; later pages count as dirty. May
 * release the lock at its end. */
void culet_pages_put(uint32_t segment, uintptr_t start, size_t pages, uint64_t dirty);

/* Extends a range in place; false if the pages behind it are not free. May release the lock first. */
bool culet_pages_extend(uint32_t segment, uintptr_t start, size_t pages, size_t more);

/* In a small heap, and for the thread that forks: returns the huge-block cache and dirty pages to the kernel until at
 * most `keep` pages of both are left. Returns bytes, which do not count towards CULET_SCAVENGER_PURGED_BYTES. May release
 * the lock. */
size_t culet_pages_reclaim(size_t keep);

/* Returns the huge-block cache and dirty pages to the kernel until at most `keep` pages of both are left. Returns bytes.
 * No lock held: the kernel works while other threads use the page heap. */
size_t culet_pages_purge_unlocked(size_t keep);

/* Waits until no such purge is in progress. No lock held. */
void culet_pages_wait_for_purge(void);

/* Unmaps about `bytes` of the huge-block cache in the same way, without counting them. Returns bytes. */
size_t culet_pages_purge_huge_cache(size_t bytes);

/* In a forked child: frees what another thread was purging. */
void culet_pages_reset_after_fork(void);

/* When the kernel refuses a mapping: unmaps the huge-block cache and every wholly free segment. Ask the kernel again in
 * any case: another thread may have unmapped them since the refusal. */
void culet_pages_release_spare(void);

/* culet_meta_get, once more after culet_pages_release_spare where needed. No lock held. */
void *culet_pages_descriptor(enum culet_meta kind);

/* culet_pagemap_prepare of one page, once more after culet_pages_release_spare where needed: a leaf of the pagemap is a
 * mapping. */
bool culet_pages_prepare(uintptr_t address);

/* Counts bytes that went back from inside slabs. */
void culet_pages_count_purged(size_t bytes);

/* Starts an interval: the low-water marks of dirty pages and of the huge-block cache are the present sizes. */
void culet_pages_begin_interval(void);

/* Pages of the huge-block cache, and dirty ones that the kernel accepts; with `since`, their low-water marks since
 * culet_pages_begin_interval. */
size_t culet_pages_idle(bool since);

struct culet_pages_stats culet_pages_stats(void);

/* The start of segment `index`; 0 where there is none, CULET_PAGES_END behind the last. */
#define CULET_PAGES_END UINTPTR_MAX
uintptr_t culet_pages_segment(uint32_t index);

/* Aborts unless the page heap's invariants hold. */
void culet_pages_check(void);
