/* lock.h - a futex lock that needs no set-up and can be held across fork.
 *
 * Algorithm: the three-state mutex of U. Drepper, "Futexes are tricky", 2011, mutex3.
 *
 * A lock has the number of its holder: a signal handler that forks can tell whether the code that it has interrupted holds
 * the lock.
 *
 * The forking thread holds every lock during a fork. Another library's fork handler may run then and allocate: for that
 * thread all locks are open (culet_lock_forking). */
#pragma once

#include "memory_orders.h"
#include "types.h"

/* Tells the processor that the thread spins. */
void culet_lock_relax(void);

#define CULET_LOCK_HELD 1u
#define CULET_LOCK_WAITERS 2u

/* The calling thread's number, times 4; 0 before its first lock. */
extern _Thread_local uint32_t culet_lock_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));
uint32_t culet_lock_set_thread(void);

static inline uint32_t culet_lock_self(void)
{
    return CULET_LIKELY(culet_lock_thread) ? culet_lock_thread : culet_lock_set_thread();
}

void culet_lock_wait(struct culet_lock *lock);
void culet_lock_wake(struct culet_lock *lock);

static inline bool culet_lock_try(struct culet_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, culet_lock_self() | CULET_LOCK_HELD,
                                                   CULET_ORDER_LOCK, memory_order_relaxed);
}

static inline void culet_lock(struct culet_lock *lock)
{
    if (CULET_UNLIKELY(!culet_lock_try(lock)))
        culet_lock_wait(lock);
}

/* Whether the calling thread holds the lock. */
static inline bool culet_lock_mine(struct culet_lock *lock)
{
    uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    return state && (state & ~3u) == culet_lock_self();
}

extern _Atomic bool culet_lock_held_for_fork; /* from culet_lock_fork_begin to culet_lock_fork_end */
bool culet_lock_held_by_caller(void);

/* Whether the calling thread is in the middle of a fork, and so holds all locks. */
static inline bool culet_lock_forking(void)
{
    return CULET_UNLIKELY(atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire)) &&
           culet_lock_held_by_caller();
}

static inline void culet_unlock(struct culet_lock *lock)
{
    if (culet_lock_forking())
        return;
    if (CULET_UNLIKELY(atomic_exchange_explicit(&lock->state, 0, CULET_ORDER_UNLOCK) & CULET_LOCK_WAITERS))
        culet_lock_wake(lock);
}

/* Begin: the calling thread holds all locks and is about to fork. End: before it releases them (in the parent) or
 * resets them (in the child). */
void culet_lock_fork_begin(void);
void culet_lock_fork_end(void);

/* In a forked child that goes on in the middle of the heap: a lock that is held is open from now on, since its holder is
 * not there. */
extern _Atomic bool culet_lock_orphans;

/* In a forked child: the lock is free, whoever held it. */
static inline void culet_lock_reset(struct culet_lock *lock)
{
    atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
}
