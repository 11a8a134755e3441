/* scavenger.h - a thread of the allocator's own that returns memory once it has stayed free for a while.
 *
 * Without it memory could only be returned while the program calls malloc or free; but a server that has had
 * its burst waits for the next request and calls neither. And a clock tells what is really free from what the
 * program is about to take again, which saves the page faults of returning too much.
 *
 * Small programs never get the thread: it is started by the request that finds a heap of more than 12 MiB, or a
 * smaller one that keeps returning what it takes again (pages.c); in a forked child by the child's next such
 * request. From a request, not from a free, since libc frees while it holds its lock on the stacks of threads,
 * which pthread_create needs; and not from a request of the dynamic loader's (loader.h). It sleeps while there is nothing to return, blocks all signals, and never
 * allocates. */
#ifndef CULET_SCAVENGER_H
#define CULET_SCAVENGER_H

#include "wakeup.h"

/* `caller`: of the request (loader.h). */
void culet_scavenger_start(const void *caller);

/* After a request for memory, outside of all locks. */
static inline void culet_scavenger_check(const void *caller)
{
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) == CULET_SCAVENGER_REQUESTED))
        culet_scavenger_start(caller);
}

/* Returns the dirty pages of the page heap but `keep`, a slice at a time. Returns bytes given back.
 * No lock held. */
size_t culet_scavenger_purge_pages(size_t keep);

#endif
