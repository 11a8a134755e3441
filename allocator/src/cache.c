#include "cache.h"

#include "abandoned.h"
#include "bias.h"
#include "bin.h"
#include "lock.h"
#include "meta.h"
#include "pages.h"
#include "reclaim_policy.h"
#include "wakeup.h"

#include <pthread.h>
#include <string.h>

static pthread_key_t key;
static bool key_created;

/* By the cache's thread, or by a forked child that does not have the thread. */
static void release_claims(struct culet_cache *cache)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_bin_release(cache, klass);
}

/* Destructors of other keys may still allocate after this one. */
static void thread_exits(void *data)
{
    struct culet_cache *cache = data;

    if (culet_abandoned()) {
        culet_cache = &culet_cache_exited;
        return;
    }
    release_claims(cache);
    culet_bias_forget(cache);
    culet_cache = &culet_cache_exited;
    culet_lock(&culet_registry_lock);
    culet_registry_remove(cache);
    culet_unlock(&culet_registry_lock);
    culet_meta_put(CULET_META_CACHE, cache);
}

void culet_cache_setup(void)
{
    key_created = pthread_key_create(&key, thread_exits) == 0;
}

static struct culet_cache *create(void)
{
    struct culet_cache *cache = culet_pages_descriptor(CULET_META_CACHE);

    if (!cache)
        return NULL;
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++) {
        cache->claim[klass].word = &culet_no_claim;
        cache->slab[klass] = NULL;
    }
    atomic_store_explicit(&cache->busy, 0, memory_order_relaxed);
    cache->uncached = false;
    cache->visits = 0;
    cache->refills = 0;
    struct culet_registry_counts before = culet_registry_add(cache);
    bool delay_claims =
        before.threads && before.created < CULET_SMALL_HEAP_UNCLAIMED_THREADS && !culet_wakeup_heap_large();
    memset(cache->unclaimed, delay_claims ? CULET_SMALL_HEAP_UNCLAIMED_BLOCKS : 0, sizeof cache->unclaimed);
    if (before.threads)
        culet_abandoned_watch();
    return cache;
}

/* The thread's first request. Without a key no destructor would release an ended thread's claims, so there are no
 * caches then. The cache is in place before pthread_setspecific, which may allocate. */
static void begin_thread(void)
{
    struct culet_cache *cache;

    culet_cache = &culet_cache_exited;
    if (!key_created || !(cache = create()))
        return;
    culet_cache = cache;
    if (pthread_setspecific(key, cache) != 0)
        thread_exits(cache);
}

void *culet_cache_refill(unsigned klass)
{
    if (CULET_UNLIKELY(culet_cache == &culet_cache_none))
        begin_thread();
    struct culet_cache *cache = culet_cache;
    if (cache == &culet_cache_exited)
        return culet_bin_take(klass);
    if (++cache->refills % CULET_SMALL_HEAP_CHECK_REFILLS == 0 && culet_bin_reclaim_due()) {
        /* The thread's next claims are then holes in units that are in use anyway. */
        release_claims(cache);
        culet_bin_reclaim();
    }
    /* With one or two blocks to a unit a claim would only keep them from other threads. */
    if (culet_classes[klass].unit_shift < 2)
        return culet_bin_take(klass);
    if (cache->unclaimed[klass]) {
        cache->unclaimed[klass]--;
        return culet_bin_take(klass);
    }
    culet_bias_visit(cache);
    return culet_bin_claim(cache, klass);
}

void culet_cache_flush(void)
{
    if (culet_cache != &culet_cache_none && culet_cache != &culet_cache_exited)
        release_claims(culet_cache);
}

void culet_cache_release_others(void)
{
    struct culet_cache *next;

    for (struct culet_cache *cache = culet_registry_first(); cache; cache = next) {
        next = LIST_NEXT(cache, link);
        if (cache == culet_cache)
            continue;
        release_claims(cache);
        culet_registry_remove(cache);
        culet_meta_put(CULET_META_CACHE, cache);
    }
}
