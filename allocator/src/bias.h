/* bias.h - while one thread alone uses the heap it needs neither atomics nor locks.
 *
 * Under Ruby's GVL one thread at a time allocates and frees, for long stretches: a whole sweep, a time
 * slice. The heap can be biased towards one thread, its biased. The biased changes live words by plain loads
 * and stores and leaves the bins' locks alone; everybody else has to end the bias first. Without an biased
 * the heap is shared: atomics and locks, for all.
 *
 * Every use of live words and bins stands between culet_bias_enter and culet_bias_leave. Entering is a
 * store to the thread's own `busy` word and a load of the biased, in this order, without a fence: the fence
 * is on the other side. Who wants to change the biased first sets it to &changing, then has the kernel put a
 * memory barrier on every running thread of the process (membarrier), and then waits until those who got in
 * before have left. (Asymmetric Dekker locking; as for biased locks in D. Dice, M. Moir, W. Scherer,
 * "Quickly Reacquirable Locks", 2003.)
 *
 * Ending and beginning a bias costs some microseconds, so a thread becomes the biased only after a streak
 * of slow-path visits of its own, and the streak that is asked for doubles each time a bias was ended
 * before it had paid. Where the kernel has no membarrier the heap stays shared. */
#ifndef CULET_BIAS_H
#define CULET_BIAS_H

#include "memory_orders.h"
#include "types.h"

extern _Atomic(struct culet_cache *) culet_bias_thread;

/* Once, at set-up and in a forked child: prepares the kernel for the barriers. */
void culet_bias_setup(void);

/* What entering comes to when there is somebody else's bias, or the thread has no cache. */
void culet_bias_enter_slow(struct culet_cache *cache);
void culet_bias_leave_slow(void);

/* Lets the thread in if it is the biased: plain updates and no locks then. If it is not, culet_bias_entry_is_slow
 * tells how it gets in. */
static inline bool culet_bias_enter_biased(struct culet_cache *cache)
{
    atomic_store_explicit(&cache->busy, 1, CULET_ORDER_ENTER_BUSY);
    atomic_signal_fence(memory_order_seq_cst);
    return CULET_LIKELY(atomic_load_explicit(&culet_bias_thread, CULET_ORDER_ENTER_BIASED) == cache);
}

/* Whether somebody else has the bias, or the thread has no cache: then culet_bias_enter_slow lets it in. */
static inline bool culet_bias_entry_is_slow(struct culet_cache *cache)
{
    return cache->uncached || atomic_load_explicit(&culet_bias_thread, CULET_ORDER_ENTER_BIASED);
}

/* Lets the thread in. True when it is the biased. */
static inline bool culet_bias_enter(struct culet_cache *cache)
{
    if (culet_bias_enter_biased(cache))
        return true;
    if (CULET_UNLIKELY(culet_bias_entry_is_slow(cache)))
        culet_bias_enter_slow(cache);
    return false;
}

static inline void culet_bias_leave_cached(struct culet_cache *cache)
{
    atomic_store_explicit(&cache->busy, 0, CULET_ORDER_LEAVE_BUSY);
}

static inline void culet_bias_leave(struct culet_cache *cache)
{
    if (CULET_UNLIKELY(cache->uncached))
        culet_bias_leave_slow();
    else
        culet_bias_leave_cached(cache);
}

/* Visits of a thread's that count as one: so that threads which share the heap seldom meet here. */
#define CULET_BIAS_VISITS 16

void culet_bias_count_visit(struct culet_cache *cache);

/* A visit to a slow path, outside of enter and leave: the thread may become the biased. */
static inline void culet_bias_visit(struct culet_cache *cache)
{
    if (cache->uncached)
        return;
    if (CULET_UNLIKELY(++cache->visits % CULET_BIAS_VISITS == 0))
        culet_bias_count_visit(cache);
}

/* Calls `work` while no thread is inside: it may do what the heap's biased may. Everybody else waits meanwhile. False,
 * and nothing is done, where the kernel has no barrier. The caller is not inside. */
bool culet_bias_run_exclusive(void (*work)(void));

/* Ends the bias, if there is one; until culet_bias_unfreeze there will be none. For fork. */
void culet_bias_freeze(void);
void culet_bias_unfreeze(void);
void culet_bias_reset(void);

/* The thread ends. */
void culet_bias_forget(struct culet_cache *cache);

#endif
