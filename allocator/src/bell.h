/* bell.h - how the heap calls the scavenger, and knows whether there is one. */
#ifndef CULET_BELL_H
#define CULET_BELL_H

#include "types.h"

/* NONE: the heap is small, and needs no scavenger. WANTED: the next request that can starts it.
 * BEGINNING: somebody is about to. ASLEEP: there is nothing to do. NEVER: the kernel refused the thread. */
enum culet_bell {
    CULET_BELL_NONE,
    CULET_BELL_WANTED,
    CULET_BELL_BEGINNING,
    CULET_BELL_NEVER,
    CULET_BELL_ASLEEP,
    CULET_BELL_AWAKE
};

extern _Atomic uint32_t culet_bell;

void culet_bell_wake(void);

/* There is memory that may be returned later. */
static inline void culet_bell_ring(void)
{
    /* The figures were stored before the look, and the compiler keeps to that order; see culet_bell_sleep. */
    atomic_signal_fence(memory_order_seq_cst);
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_bell, memory_order_relaxed) == CULET_BELL_ASLEEP))
        culet_bell_wake();
}

/* Whether the heap has been large. */
static inline bool culet_bell_large(void)
{
    return atomic_load_explicit(&culet_bell, memory_order_relaxed) != CULET_BELL_NONE;
}

/* Whether somebody will look after free memory, so that it need not be returned at once. */
static inline bool culet_bell_answered(void)
{
    return atomic_load_explicit(&culet_bell, memory_order_relaxed) >= CULET_BELL_ASLEEP;
}

/* The heap has grown so large that it needs a scavenger. */
void culet_bell_want(void);

/* The scavenger's side. Sleep returns when it is called; at once if `anything` says after the bell is hung
 * that there is something to do. */
void culet_bell_sleep(bool (*anything)(void));

/* In a forked child, which has no scavenger yet. */
void culet_bell_reset(void);

#endif
