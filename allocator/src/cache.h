/* cache.h - requests for a block of a size class: from the thread's claim, or by claiming another unit. */
#ifndef CULET_CACHE_H
#define CULET_CACHE_H

#include "registry.h"
#include "size_class.h"
#include "types.h"

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

/* Releases all claims of the calling thread. */
void culet_cache_flush(void);

/* In a forked child: releases the claims of the threads that the child does not have. */
void culet_cache_release_others(void);

#endif
