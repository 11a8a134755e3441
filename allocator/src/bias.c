#define _GNU_SOURCE
#include "bias.h"

#include "abandoned.h"
#include "lock.h"
#include "os.h"
#include "registry.h"

/* In units of CULET_BIAS_VISITS: the least and the most visits in a row before a thread becomes biased, and the visits
 * after which a bias has paid for its change (a visit stands for some fifty frees). */
#define STREAK_LEAST 1
#define STREAK_MOST (1u << 16)
#define PAYS 4

_Atomic(struct culet_cache *) culet_bias_thread;

static struct culet_lock lock;           /* guards changes of the biased thread */
static struct culet_cache changing;      /* stands for the biased thread while it changes; no thread's cache */
static _Atomic uint32_t uncached_inside; /* threads without a cache that are inside */
static _Atomic bool possible;            /* the kernel has membarrier */

/* Hints; races between their updates do no harm. */
static _Atomic uint32_t needed = STREAK_LEAST;
static _Atomic(struct culet_cache *) last_visitor;
static _Atomic uint32_t streak;

void culet_bias_setup(void)
{
    atomic_store(&possible, culet_os_barrier_setup());
}

static void wait_for(_Atomic uint32_t *busy)
{
    /* Sleeps in the end: a real-time thread's yield does not let a thread of lower priority run. */
    for (unsigned rounds = 0; atomic_load_explicit(busy, CULET_ORDER_WAIT); rounds++)
        if (rounds > 64)
            culet_os_pause(rounds > 1024 ? 100 : 0);
}

/* [lock] Keeps all threads out until end_exclusive, and waits for those that are inside. Returns the biased thread. */
static struct culet_cache *begin_exclusive(void)
{
    struct culet_cache *before = atomic_exchange_explicit(&culet_bias_thread, &changing, CULET_ORDER_BEGIN_EXCLUSIVE);

    if (CULET_UNLIKELY(!culet_os_barrier())) {
        /* A sandbox has forbidden it meanwhile. No bias from now on; for this one, wait much longer than any processor
         * delays a store. */
        atomic_store(&possible, false);
        culet_os_pause(10000);
    }
    if (before) {
        wait_for(&before->busy);
    } else {
        culet_registry_wait_all(wait_for);
        wait_for(&uncached_inside);
    }
    return before;
}

/* [lock] Lets in the thread of `biased`, or with NULL all threads. */
static void end_exclusive(struct culet_cache *biased)
{
    atomic_store_explicit(&culet_bias_thread, atomic_load(&possible) ? biased : NULL, CULET_ORDER_END_EXCLUSIVE);
}

/* [lock] */
static void change(struct culet_cache *biased)
{
    begin_exclusive();
    end_exclusive(biased);
}

/* [lock] */
static void end(void)
{
    uint32_t visits = atomic_load_explicit(&streak, memory_order_relaxed);
    uint32_t required = atomic_load_explicit(&needed, memory_order_relaxed);

    if (!atomic_load(&culet_bias_thread))
        return;
    if (visits < PAYS && required < STREAK_MOST)
        required *= 2;
    else if (visits >= PAYS && required > STREAK_LEAST)
        required /= 2;
    atomic_store_explicit(&needed, required, memory_order_relaxed);
    change(NULL);
    atomic_store_explicit(&streak, 0, memory_order_relaxed);
}

void culet_bias_enter_slow(struct culet_cache *cache)
{
    /* An abandoned child has no other thread to wait for. */
    if (culet_abandoned())
        return;
    for (;;) {
        if (cache->uncached)
            atomic_fetch_add_explicit(&uncached_inside, 1, CULET_ORDER_SLOW_UNCACHED);
        else
            atomic_store_explicit(&cache->busy, 1, CULET_ORDER_SLOW_BUSY);
        if (!atomic_load_explicit(&culet_bias_thread, CULET_ORDER_SLOW_BIASED))
            return;
        culet_bias_leave(cache);
        culet_lock(&lock);
        end();
        culet_unlock(&lock);
    }
}

void culet_bias_leave_slow(void)
{
    atomic_fetch_sub_explicit(&uncached_inside, 1, CULET_ORDER_LEAVE_UNCACHED);
}

void culet_bias_count_visit(struct culet_cache *cache)
{
    if (culet_abandoned())
        return;
    if (atomic_load_explicit(&last_visitor, memory_order_relaxed) != cache) {
        atomic_store_explicit(&last_visitor, cache, memory_order_relaxed);
        atomic_store_explicit(&streak, 0, memory_order_relaxed);
        return;
    }
    uint32_t visits = atomic_load_explicit(&streak, memory_order_relaxed) + 1;
    atomic_store_explicit(&streak, visits, memory_order_relaxed);
    if (CULET_LIKELY(atomic_load_explicit(&culet_bias_thread, memory_order_relaxed) ||
                     visits < atomic_load_explicit(&needed, memory_order_relaxed)))
        return;
    if (!atomic_load_explicit(&possible, memory_order_relaxed) || !culet_lock_try(&lock))
        return;
    if (!atomic_load(&culet_bias_thread)) {
        change(cache);
        atomic_store_explicit(&streak, 0, memory_order_relaxed);
    }
    culet_unlock(&lock);
}

void culet_bias_forget(struct culet_cache *cache)
{
    culet_lock(&lock);
    if (atomic_load(&culet_bias_thread) == cache)
        change(NULL);
    culet_unlock(&lock);
}

bool culet_bias_run_exclusive(void (*work)(void))
{
    if (!atomic_load(&possible))
        return false;
    culet_lock(&lock);
    struct culet_cache *biased = begin_exclusive();
    work();
    end_exclusive(biased);
    culet_unlock(&lock);
    return true;
}

void culet_bias_freeze(void)
{
    culet_lock(&lock);
    end();
}

void culet_bias_unfreeze(void)
{
    culet_unlock(&lock);
}

void culet_bias_reset(void)
{
    culet_lock_reset(&lock);
    atomic_store(&uncached_inside, 0);
    culet_bias_setup();
}
