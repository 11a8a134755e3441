/* bias.h - while one thread alone uses the heap, it needs neither atomics nor locks.
 *
 * Under Ruby's GVL one thread at a time allocates and frees, for long stretches. The heap can be biased towards that
 * thread: the biased thread changes `live` words by plain loads and stores and skips the bins' locks. Any other thread
 * ends the bias before it enters. Without a biased thread the heap is shared, with atomics and locks for all.
 *
 * Every use of `live` words and bins stands between culet_bias_enter and culet_bias_leave. Entering stores 1 to the
 * thread's own `busy` word, then loads the biased thread, without a fence. To change the biased thread: store
 * &changing, call membarrier(2), wait until every `busy` word that matters is 0. (Asymmetric Dekker locking; cf. D.
 * Dice, M. Moir, W. Scherer, "Quickly Reacquirable Locks", 2003.)
 *
 * A change costs microseconds. So a thread becomes biased after a streak of slow-path visits of its own, and the streak
 * required doubles each time a bias ends before it has paid. Where the kernel has no membarrier the heap stays shared.
 *
 *     biased thread == cache    only that thread is inside; its updates are plain
 *     biased thread == changing nobody new gets in
 *     biased thread == NULL     shared */
#ifndef CULET_BIAS_H
#define CULET_BIAS_H

#include "memory_orders.h"
#include "types.h"

/* The cache of the biased thread. */
extern _Atomic(struct culet_cache *) culet_bias_thread;

/* At set-up, and in a forked child: registers for membarrier. */
void culet_bias_setup(void);

/* The rest of entering and leaving, while another thread is biased or without a cache. */
void culet_bias_enter_slow(struct culet_cache *cache);
void culet_bias_leave_slow(void);

/* Enters if this is the biased thread; otherwise culet_bias_entry_is_slow says how it enters. */
static inline bool culet_bias_enter_biased(struct culet_cache *cache)
{
    atomic_store_explicit(&cache->busy, 1, CULET_ORDER_ENTER_BUSY);
    atomic_signal_fence(memory_order_seq_cst);
    return CULET_LIKELY(atomic_load_explicit(&culet_bias_thread, CULET_ORDER_ENTER_BIASED) == cache);
}

/* Whether culet_bias_enter_slow is needed; otherwise culet_bias_enter_biased has entered, as one of many. */
static inline bool culet_bias_entry_is_slow(struct culet_cache *cache)
{
    return cache->uncached || atomic_load_explicit(&culet_bias_thread, CULET_ORDER_ENTER_BIASED);
}

/* Enters. Returns whether this is the biased thread. */
static inline bool culet_bias_enter(struct culet_cache *cache)
{
    if (culet_bias_enter_biased(cache))
        return true;
    if (CULET_UNLIKELY(culet_bias_entry_is_slow(cache)))
        culet_bias_enter_slow(cache);
    return false;
}

/* For a thread with a cache of its own. */
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

/* Only every 16th visit is counted, so that threads which share the heap seldom write the shared counter. */
#define CULET_BIAS_VISITS 16

void culet_bias_count_visit(struct culet_cache *cache);

/* A visit to a slow path, after culet_bias_leave: the thread may become biased. */
static inline void culet_bias_visit(struct culet_cache *cache)
{
    if (cache->uncached)
        return;
    if (CULET_UNLIKELY(++cache->visits % CULET_BIAS_VISITS == 0))
        culet_bias_count_visit(cache);
}

/* Calls `work` while no thread is inside; other threads wait. False, without a call, where the kernel has no
 * membarrier. The caller must not be inside. */
bool culet_bias_run_exclusive(void (*work)(void));

/* For fork: ends the bias and keeps the heap shared until culet_bias_unfreeze, or culet_bias_reset in the child. */
void culet_bias_freeze(void);
void culet_bias_unfreeze(void);
void culet_bias_reset(void);

/* The thread exits. */
void culet_bias_forget(struct culet_cache *cache);

#endif
