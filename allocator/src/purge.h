/* purge.h - returns the free pages inside slabs, and slabs without a live block.
 *
 * A purge takes the free blocks of the pages that it is going to return, as a request would, leaves the arena, calls the
 * kernel, and gives the blocks back. So no thread waits for a system call. One thread at a time purges. */
#pragma once

#include "types.h"

/* Held during a purge; also by a fork, so that no child misses the blocks of a purge in progress, and while statistics
 * count the blocks of slabs. */
extern struct culet_lock culet_purge_lock;

struct culet_purged {
    size_t bytes;  /* returned to the kernel from inside slabs */
    size_t visits; /* of slabs with free blocks */
    bool left;     /* there are free pages that may be resident, but were in use lately */
};

/* Purges all arenas. With `idle_only` slabs that were used since the last such purge are left out, and this purge is the
 * last from then on. Not inside an arena. */
struct culet_purged culet_purge(bool idle_only);

/* When memory is out: waits for purges in progress, collects what threads have freed in the arenas of others, and
 * destroys the slabs without a live block, whatever their class. Returns no page to the kernel. False: nothing was done,
 * because the thread forks. Not inside an arena. */
bool culet_purge_free_slabs(void);

/* Whether any arena was used since the last purge of idle pages. Without any lock. */
bool culet_purge_anything_used(void);

/* In a small heap, once in a while: counts the thread's requests for another unit, and purges the heap if it keeps many
 * free pages. Not inside an arena. */
void culet_purge_small_heap(void);

/* By a thread that ends, and may have left free blocks in several arenas: purges a small heap. Not inside an arena. */
void culet_purge_after_thread(void);

/* In a larger heap, while it grows: returns as many free pages of slabs as have become resident. Not inside an arena. */
void culet_purge_on_growth(void);

/* Of every class in every arena: no current unit any more, nor blocks claimed for the profile. False: a thread stayed inside
 * an arena for a second; that one is left as it is. */
bool culet_purge_drop_current(void);
