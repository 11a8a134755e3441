/* scavenger.h - a thread of the allocator that returns memory to the kernel once it has stayed free for a while.
 *
 * Without it memory could go back only while the program calls malloc or free, and an idle server calls neither. A
 * program gets one when its heap is larger than the bounds of reclaim_policy.h; a forked child gets its own.
 *
 * It is started by a request for memory, not by a free: libc frees while it holds the lock that pthread_create needs;
 * and not by a request from inside the dynamic loader (loader.h). The thread sleeps while there is nothing to return,
 * blocks all signals, is named "culet" and never allocates. */
#pragma once

#include "wakeup.h"

/* `caller`: the return address of the request (loader.h). */
void culet_scavenger_start(const void *caller);

/* After a request for memory, outside of all locks. */
static inline void culet_scavenger_check(const void *caller)
{
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) == CULET_SCAVENGER_REQUESTED))
        culet_scavenger_start(caller);
}
