/* wakeup.h - how the heap calls the scavenger, and knows whether there is one. */
#ifndef CULET_WAKEUP_H
#define CULET_WAKEUP_H

#include "types.h"

/* NONE: the heap is small, and needs no scavenger. WANTED: the next request that can starts it.
 * BEGINNING: somebody is about to. ASLEEP: there is nothing to do. NEVER: the kernel refused the thread. */
enum culet_scavenger_state {
    CULET_SCAVENGER_NONE,
    CULET_SCAVENGER_REQUESTED,
    CULET_SCAVENGER_STARTING,
    CULET_SCAVENGER_UNAVAILABLE,
    CULET_SCAVENGER_ASLEEP,
    CULET_SCAVENGER_AWAKE
};

extern _Atomic uint32_t culet_scavenger_state;

void culet_wakeup_send(void);

/* There is memory that may be returned later. */
static inline void culet_wakeup_notify(void)
{
    /* The figures were stored before the look, and the compiler keeps to that order; see culet_wakeup_wait. */
    atomic_signal_fence(memory_order_seq_cst);
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) == CULET_SCAVENGER_ASLEEP))
        culet_wakeup_send();
}

/* Whether the heap has been large. */
static inline bool culet_wakeup_heap_large(void)
{
    return atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) != CULET_SCAVENGER_NONE;
}

/* Whether somebody will look after free memory, so that it need not be returned at once. */
static inline bool culet_wakeup_scavenger_runs(void)
{
    return atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) >= CULET_SCAVENGER_ASLEEP;
}

/* The heap has grown so large that it needs a scavenger. */
void culet_wakeup_request_scavenger(void);

/* The scavenger's side. Sleep returns when it is called; at once if `anything` says after the bell is hung
 * that there is something to do. */
void culet_wakeup_wait(bool (*anything)(void));

/* In a forked child, which has no scavenger yet. */
void culet_wakeup_reset(void);

#endif
