/* lock.h - a futex lock that needs no set-up and can be held across fork.
 *
 * Algorithm: the three-state mutex of U. Drepper, "Futexes are tricky", 2011, mutex3.
 *
 * The forking thread holds every lock during a fork. Another library's fork handler may run then and allocate: for that
 * thread all locks are open (culet_lock_forking). */
#ifndef CULET_LOCK_H
#define CULET_LOCK_H

#include "memory_orders.h"
#include "types.h"

/* Tells the processor that the thread spins. */
void culet_lock_relax(void);

void culet_lock_wait(struct culet_lock *lock);
void culet_lock_wake(struct culet_lock *lock);

static inline void culet_lock(struct culet_lock *lock)
{
    uint32_t free = 0;

    if (CULET_UNLIKELY(
            !atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, CULET_ORDER_LOCK, memory_order_relaxed)))
        culet_lock_wait(lock);
}

static inline bool culet_lock_try(struct culet_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, CULET_ORDER_LOCK, memory_order_relaxed);
}

bool culet_lock_forking(void);
extern _Atomic bool culet_lock_held_for_fork;

static inline void culet_unlock(struct culet_lock *lock)
{
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire)) && culet_lock_forking())
        return;
    if (CULET_UNLIKELY(atomic_exchange_explicit(&lock->state, 0, CULET_ORDER_UNLOCK) == 2))
        culet_lock_wake(lock);
}

/* Begin: the calling thread holds all locks and is about to fork. End: before it releases them (in the parent) or
 * resets them (in the child). */
void culet_lock_fork_begin(void);
void culet_lock_fork_end(void);

/* In a forked child: the lock is free, whoever held it. */
static inline void culet_lock_reset(struct culet_lock *lock)
{
    atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
}

#endif
