/* reclaim_policy.h - when freed memory goes back to the kernel: every constant, its unit and its reason.
 *
 * A larger heap has a scavenger thread (scavenger.h). Frees keep memory resident, because programs reuse most of it at
 * once; the scavenger returns what stayed free for a whole interval: the low-water mark of dirty pages and of the
 * huge-block cache, and the free pages of slabs that were not used. While the heap grows, requests return free pages of
 * slabs as well. A small heap has no scavenger. It returns pages in the free that exceeds a bound, and free pages of
 * slabs after some slow-path requests and when a thread ends.
 *
 *     resource              kept by            returned by the scavenger, or in a small heap by
 *     dirty pages           pages.c            the free that exceeds culet_reclaim_keep_pages
 *     free pages of slabs   purge.c            culet_purge_small_heap, culet_purge_after_thread
 *     huge blocks           huge_cache.c       nothing: without a scavenger they are unmapped at once
 *     quarantine            checked.c          the scavenger only
 *     main stack            (the kernel)       the main thread, once, and malloc_trim (stack.c)
 *
 * malloc_trim returns all of it at once. The interval is the one value that an operator may set (CULET_DECAY). */
#pragma once

#include "types.h"

enum {
    /* ---- the scavenger ---- */

    /* ms between two checks; memory goes back after one to two of them. Shorter ones gained nothing on Redmine.
     * CULET_DECAY sets another, within these bounds. */
    CULET_DECAY_MS = 500,
    CULET_DECAY_MS_MIN = 10,
    CULET_DECAY_MS_MAX = 3600000,

    /* segments (12 MiB): a heap of more gets a scavenger. A Ruby process without an application stays below. */
    CULET_SCAVENGER_SEGMENTS = 3,
    /* bytes: so does a smaller heap that has returned this much, since it reuses what it returns; pages that were free
     * and never touched are counted as well, */
    CULET_SCAVENGER_PURGED_BYTES = 12 << 20,
    /* bytes: or has freed this much in huge blocks, since only a scavenger lets them be cached. */
    CULET_SCAVENGER_HUGE_FREED_BYTES = 16 << 20,

    /* pages: fewer idle ones in the page heap are not worth a visit. */
    CULET_IDLE_PAGES_MIN = 64,

    /* bytes and slabs that are purged at a time, and slabs that are visited while other threads wait for the arena. The
     * pages of a slice cannot be used meanwhile. */
    CULET_PURGE_SLICE_BYTES = 1 << 20,
    CULET_PURGE_SLICE_SLABS = 64,
    CULET_PURGE_VISITS = 256,
    /* visits for each ms of the next interval, at most: some 0.3 us each, so a fiftieth of a processor. It makes no
     * difference below 2 GB. */
    CULET_PURGE_VISITS_PER_MS = 64,
    /* us that a request waits for pages that are being purged before another segment is mapped. Returning a slice
     * takes 0.3 ms, but its thread may be preempted. */
    CULET_PURGE_WAIT_US = 1000,

    /* ---- dirty pages ---- */

    /* pages (128 KiB), plus 1/32 of the used ones: the bound without a scavenger, and the level above which growth
     * purges. */
    CULET_KEEP_PAGES_MIN = 32,
    CULET_KEEP_PAGES_SHARE = 32,

    /* Above that level one dirty page goes back for this many new ones. 1: replacing ranges of mixed lengths faults for
     * ever; none: the peak of a fragmented heap is 8 % higher. In batches of so many pages. */
    CULET_GROWTH_RATIO = 4,
    CULET_GROWTH_BATCH_PAGES = 256,

    /* ---- free pages of slabs ---- */

    /* With a scavenger, as many go back as new pages become resident, in batches of CULET_GROWTH_BATCH_PAGES: the peak
     * of a program whose size classes have free pages each is 5 to 15 % lower. Slices that one such purge visits. */
    CULET_GROWTH_SLICES = 4,
    /* pages: a purge that returned fewer doubles the batch, */
    CULET_GROWTH_PURGED_MIN = 32,
    /* to at most 1/8 of the used pages. */
    CULET_GROWTH_BATCH_SHARE = 8,

    /* ---- a small heap, without a scavenger ---- */

    /* slow-path requests of a thread between two checks of the free pages of slabs, or as many as the check visited
     * slabs. */
    CULET_SMALL_HEAP_CHECK_REFILLS = 32,
    /* bytes: free pages of slabs above this are returned, and dirty pages above so many (0). */
    CULET_SMALL_HEAP_KEEP_BYTES = 16 << 10,
    CULET_SMALL_HEAP_KEEP_PAGES = 0,
    /* bytes: after this much was returned the program is not small or not young any more, and the checks end. */
    CULET_SMALL_HEAP_RECLAIM_MAX = 16 << 20,
    /* A tiny class's last slab is destroyed when idle; after so many times it is kept, because the program comes
     * back. */
    CULET_SMALL_HEAP_SLAB_RELEASES = 64,

    /* ---- the quarantine of a hardened process ---- */

    /* blocks that the scavenger leaves in it; each may keep a page from going back (1 MiB). */
    CULET_QUARANTINE_IDLE_BLOCKS = 256,

    /* ---- huge blocks ---- */

    /* bytes that huge blocks and the cache may have together beyond what the blocks had at any time in the interval: 4 MiB
     * made growing buffers three times slower. */
    CULET_HUGE_CACHE_BYTES = 16 << 20,
    /* extents: a search visits all. */
    CULET_HUGE_CACHE_EXTENTS = 32,
    /* bytes: a longer block of calloc's gives its cached pages back instead of being written, since a large table may stay
     * empty for the most part. The length from which glibc maps every block (DEFAULT_MMAP_THRESHOLD_MAX). */
    CULET_HUGE_CLEAR_BYTES = 32 << 20,
    /* For as many new pages, as many cached ones go back, so that the cache adds nothing to a peak; in batches of
     * pages. */
    CULET_GROWTH_HUGE_BATCH_PAGES = 64,
    /* A growing block is copied into cached pages, not moved, if it is at most so many times as long as its growth:
     * copying a page costs 0.5 us, moving it 0.2, faulting in a new one 3.2. */
    CULET_HUGE_COPY_RATIO = 8,

    /* ---- the main thread's stack (stack.h) ---- */

    /* segments: with the second one the program has done its first steps and touched the stack that it will not use. */
    CULET_STACK_SEGMENTS = 2,
    /* bytes below the stack pointer that the next calls need. */
    CULET_STACK_MARGIN = 128 << 10,
    /* bytes from the stack's top; a stack pointer farther away is not on the main thread's stack. */
    CULET_STACK_REACH = 64 << 20,
};

/* Dirty pages that a heap of so many used pages keeps without a scavenger. */
static inline size_t culet_reclaim_keep_pages(size_t used_pages)
{
    return CULET_KEEP_PAGES_MIN + used_pages / CULET_KEEP_PAGES_SHARE;
}

/* The ms up to the next purge, after one that visited so many slabs. */
static inline unsigned culet_reclaim_interval(unsigned decay_ms, size_t visits)
{
    size_t least = visits / CULET_PURGE_VISITS_PER_MS;

    return least > decay_ms ? (unsigned)least : decay_ms;
}

/* The interval that a value of CULET_DECAY sets; 0 unless it is a number within the bounds. */
static inline unsigned culet_reclaim_parse_decay(const char *value)
{
    unsigned long ms = 0;

    for (const char *at = value; *at; at++) {
        if (*at < '0' || *at > '9' || ms > CULET_DECAY_MS_MAX)
            return 0;
        ms = ms * 10 + (unsigned long)(*at - '0');
    }
    return ms < CULET_DECAY_MS_MIN || ms > CULET_DECAY_MS_MAX ? 0 : (unsigned)ms;
}
