#include "cache.h"

#include "wakeup.h"
#include "bias.h"
#include "lock.h"
#include "meta.h"
#include "abandoned.h"
#include "pages.h"
#include "selfmap_export.h"

#include <pthread.h>
#include <string.h>

/* Requests by the slow path between two looks at whether a small heap should be tidied. */
#define CULET_SMALL_CHECK_REFILLS 64

/* Blocks of each class that a thread takes singly before it claims a unit of the class, if it is not the only thread:
 * what a thread that soon ends, or does little, would claim lies in pages of its own. That is much for a heap that has
 * not been large. Of the first threads only: where they come and go all the time a claim is the cheaper way. */
#define CULET_SMALL_UNCLAIMED_BLOCKS 8
#define CULET_SMALL_UNCLAIMED_THREADS 64

struct culet_lock culet_registry_lock;
static struct culet_cache *registry; /* [registry lock] all threads' caches */
static size_t threads;               /* [registry lock] */
static size_t created;                 /* [registry lock] threads that ever had a cache */
static pthread_key_t key;
static bool key_made;

CULET_SELFMAP_EXPORT(threads, culet_selfmap_threads);

/* The cache that holds nothing, of threads that have not allocated yet... */
static struct culet_cache no_cache = {.uncached = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_nothing}};
/* ... and of those that are ending, or could not get one: they take block by block. */
static struct culet_cache exited_cache = {.uncached = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_nothing}};

_Thread_local struct culet_cache *culet_cache = &no_cache;

/* By its thread; or by a forked child that does not have the thread. */
static void release_claims(struct culet_cache *cache)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_bin_release(cache, klass);
}

static void unlist(struct culet_cache *cache)
{
    if (cache->prev)
        cache->prev->next = cache->next;
    else
        registry = cache->next;
    if (cache->next)
        cache->next->prev = cache->prev;
    threads--;
}

/* A thread ends. Destructors of other keys may still allocate after this. */
static void thread_ends(void *data)
{
    struct culet_cache *cache = data;

    if (culet_abandoned()) {
        culet_cache = &exited_cache;
        return;
    }
    release_claims(cache);
    culet_bias_forget(cache);
    culet_cache = &exited_cache;
    culet_lock(&culet_registry_lock);
    unlist(cache);
    culet_unlock(&culet_registry_lock);
    culet_meta_put(CULET_META_CACHE, cache);
}

void culet_cache_setup(void)
{
    key_made = pthread_key_create(&key, thread_ends) == 0;
}

static struct culet_cache *create(void)
{
    struct culet_cache *cache = culet_pages_descriptor(CULET_META_CACHE);

    if (!cache)
        return NULL;
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++) {
        cache->claim[klass].word = &culet_nothing;
        cache->slab[klass] = NULL;
    }
    atomic_store_explicit(&cache->busy, 0, memory_order_relaxed);
    cache->uncached = false;
    cache->visits = 0;
    cache->refills = 0;
    culet_lock(&culet_registry_lock);
    bool unclaimed = threads && created < CULET_SMALL_UNCLAIMED_THREADS && !culet_wakeup_heap_large();
    memset(cache->unclaimed, unclaimed ? CULET_SMALL_UNCLAIMED_BLOCKS : 0, sizeof cache->unclaimed);
    created++;
    cache->prev = NULL;
    cache->next = registry;
    if (registry)
        registry->prev = cache;
    registry = cache;
    bool others = threads++ != 0;
    culet_unlock(&culet_registry_lock);
    if (others)
        culet_abandoned_watch();
    return cache;
}

/* The thread's first request. Without a key nobody would give back what an exited_cache thread holds, so then
 * there are no caches. The cache is in place before pthread_setspecific, which may allocate. */
static void begin_thread(void)
{
    struct culet_cache *cache;

    culet_cache = &exited_cache;
    if (!key_made || !(cache = create()))
        return;
    culet_cache = cache;
    if (pthread_setspecific(key, cache) != 0)
        thread_ends(cache);
}

void *culet_cache_refill(unsigned klass)
{
    if (CULET_UNLIKELY(culet_cache == &no_cache))
        begin_thread();
    struct culet_cache *cache = culet_cache;
    if (cache == &exited_cache)
        return culet_bin_take(klass);
    if (++cache->refills % CULET_SMALL_CHECK_REFILLS == 0 && culet_bin_reclaim_due()) {
        /* What the thread claims next are the holes in units that are in use anyway. */
        release_claims(cache);
        culet_bin_reclaim();
    }
    /* Where a unit has one or two blocks a claim would only keep them from others. */
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
    if (culet_cache != &no_cache && culet_cache != &exited_cache)
        release_claims(culet_cache);
}

void culet_cache_wait_all(void (*wait)(_Atomic uint32_t *busy))
{
    culet_lock(&culet_registry_lock);
    for (struct culet_cache *cache = registry; cache; cache = cache->next)
        wait(&cache->busy);
    culet_unlock(&culet_registry_lock);
}

size_t culet_cache_count(void)
{
    culet_lock(&culet_registry_lock);
    size_t count = threads;
    culet_unlock(&culet_registry_lock);
    return count;
}

void culet_cache_release_others(void)
{
    struct culet_cache *next;

    for (struct culet_cache *cache = registry; cache; cache = next) {
        next = cache->next;
        if (cache == culet_cache)
            continue;
        release_claims(cache);
        unlist(cache);
        culet_meta_put(CULET_META_CACHE, cache);
    }
}
