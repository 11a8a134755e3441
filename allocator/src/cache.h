/* cache.h - what a thread holds: at most one claimed unit per size class. */
#ifndef CULET_CACHE_H
#define CULET_CACHE_H

#include "bias.h"
#include "bin.h"
#include "size_class.h"
#include "types.h"

/* The calling thread's cache. Threads start with one that holds nothing, so that the fast path needs no
 * test; the slow path gives them their own. */
extern _Thread_local struct culet_cache *culet_cache __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Once, before any thread has a cache of its own. */
void culet_cache_setup(void);

/* A block of a class for a thread whose claim is used up; NULL when out of memory. */
void *culet_cache_refill(unsigned klass);

/* A block of a class; NULL when out of memory. */
static inline void *culet_cache_get(unsigned klass)
{
    struct culet_claim *claim = &culet_cache->claim[klass];
    uint64_t claimed = atomic_load_explicit(claim->word, memory_order_relaxed);

    if (CULET_UNLIKELY(!claimed))
        return culet_cache_refill(klass);
    atomic_store_explicit(claim->word, claimed & (claimed - 1), memory_order_relaxed);
    return (void *)(claim->base + (size_t)__builtin_ctzll(claimed) * culet_classes[klass].size);
}

/* Gives back all that the calling thread holds. */
void culet_cache_flush(void);

size_t culet_cache_count(void);

/* Calls `wait` for each thread's busy word. */
void culet_cache_wait_all(void (*wait)(_Atomic uint32_t *busy));

/* Around fork. `adopt`: the child gives back what the threads that it does not have were holding. */
extern struct culet_lock culet_registry_lock;
void culet_cache_release_others(void);

#endif
