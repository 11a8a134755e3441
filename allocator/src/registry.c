#include "registry.h"

#include "lock.h"
#include "selfmap_export.h"

_Atomic uint64_t culet_no_claim;

struct culet_cache culet_cache_none = {.uncached = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_no_claim}};
struct culet_cache culet_cache_exited = {.uncached = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_no_claim}};

_Thread_local struct culet_cache *culet_cache = &culet_cache_none;

struct culet_lock culet_registry_lock;
static LIST_HEAD(culet_cache_list, culet_cache) caches; /* [registry lock, as all below] */
static size_t threads;
static size_t created;

CULET_SELFMAP_EXPORT(threads, culet_selfmap_threads);

struct culet_registry_counts culet_registry_add(struct culet_cache *cache)
{
    culet_lock(&culet_registry_lock);
    struct culet_registry_counts before = {.threads = threads, .created = created};

    threads++;
    created++;
    LIST_INSERT_HEAD(&caches, cache, link);
    culet_unlock(&culet_registry_lock);
    return before;
}

void culet_registry_remove(struct culet_cache *cache)
{
    LIST_REMOVE(cache, link);
    threads--;
}

struct culet_cache *culet_registry_first(void)
{
    return LIST_FIRST(&caches);
}

void culet_registry_wait_all(void (*wait)(_Atomic uint32_t *busy))
{
    culet_lock(&culet_registry_lock);
    struct culet_cache *cache;
    LIST_FOREACH(cache, &caches, link)
    wait(&cache->busy);
    culet_unlock(&culet_registry_lock);
}

size_t culet_registry_count(void)
{
    culet_lock(&culet_registry_lock);
    size_t count = threads;
    culet_unlock(&culet_registry_lock);
    return count;
}
