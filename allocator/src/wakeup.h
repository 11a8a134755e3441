/* wakeup.h - how the heap wakes the scavenger, and whether there is one. */
#pragma once

#include "types.h"

/* NONE: the heap is small and needs no scavenger. REQUESTED: the next request for memory that may starts it. STARTING:
 * a thread is about to. UNAVAILABLE: the kernel refused the thread. ASLEEP: nothing to return. */
enum culet_scavenger_state {
    CULET_SCAVENGER_NONE,
    CULET_SCAVENGER_REQUESTED,
    CULET_SCAVENGER_STARTING,
    CULET_SCAVENGER_UNAVAILABLE,
    CULET_SCAVENGER_ASLEEP,
    CULET_SCAVENGER_AWAKE
};

extern _Atomic uint32_t culet_scavenger_state;
extern _Atomic bool culet_wakeup_large;

void culet_wakeup_send(void);

/* There is memory to return later. */
static inline void culet_wakeup_notify(void)
{
    /* The counts are stored before the state is loaded; only the compiler is held to that order. See
     * culet_wakeup_wait. */
    atomic_signal_fence(memory_order_seq_cst);
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) == CULET_SCAVENGER_ASLEEP))
        culet_wakeup_send();
}

/* Whether the heap has had more than CULET_SCAVENGER_SEGMENTS. A smaller one may have a scavenger too. */
static inline bool culet_wakeup_heap_large(void)
{
    return atomic_load_explicit(&culet_wakeup_large, memory_order_relaxed);
}

/* Whether there is a scavenger, so that free memory need not be returned at once. */
static inline bool culet_wakeup_scavenger_runs(void)
{
    return atomic_load_explicit(&culet_scavenger_state, memory_order_relaxed) >= CULET_SCAVENGER_ASLEEP;
}

/* The heap returns enough memory for a scavenger; the second also makes it a large heap. */
void culet_wakeup_request_scavenger(void);
void culet_wakeup_note_large(void);

/* By the scavenger: sleeps until notified. `anything` is called once after the state is ASLEEP; true ends the sleep. */
void culet_wakeup_wait(bool (*anything)(void));

/* In a forked child, which has no scavenger: a large heap gets one at once. */
void culet_wakeup_reset(void);
