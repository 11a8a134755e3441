/* heap.h - the heap as a whole: set-up, fork, trim, counters. */
#pragma once

#include "bin.h"
#include "large.h"
#include "abandoned.h"
#include "pages.h"
#include "types.h"

/* EARLY: active, but libc has no environ yet, in which this process is to be marked (program.h). */
enum culet_state { CULET_UNINITIALIZED, CULET_EARLY, CULET_ACTIVE, CULET_DORMANT };

extern _Atomic uint8_t culet_heap_state_now;

/* Advances from UNINITIALIZED or EARLY as far as possible. Returns the new state. */
enum culet_state culet_heap_setup(void);

static inline enum culet_state culet_heap_state(void)
{
    uint8_t state = atomic_load_explicit(&culet_heap_state_now, memory_order_acquire);
    return CULET_LIKELY(state >= CULET_ACTIVE) ? state : culet_heap_setup();
}

/* Whether libc's allocator serves: the library is dormant, or this is an abandoned child. */
static inline bool culet_heap_dormant(void)
{
    return culet_heap_state() == CULET_DORMANT || culet_abandoned();
}

/* Functions of a part above the heap around a fork (profiler.h). `inside`: whether the calling thread has interrupted
 * itself in that part, as a signal handler does. */
struct culet_fork_hooks {
    bool (*inside)(void);
    void (*before)(void);
    void (*after_in_parent)(void);
    void (*after_in_child)(void);
};

/* Once, before a second thread exists. The locks that `outer` takes come before all others, those of `inner` after
 * them. */
void culet_heap_set_fork_hooks(const struct culet_fork_hooks *outer, const struct culet_fork_hooks *inner);

/* malloc_trim: returns every wholly free page but `keep_bytes` of them. Returns bytes. */
size_t culet_heap_trim(size_t keep_bytes);

/* Forks attempted, by this process and those it was forked from. */
size_t culet_heap_forks(void);

/* Aborts unless every invariant of types.h holds. Only while no other thread allocates or frees. */
void culet_heap_check(void);
