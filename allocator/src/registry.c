#include "registry.h"

#include "lock.h"
#include "selfmap_export.h"

_Atomic uint64_t culet_no_claim;

struct culet_cache culet_cache_none = {
    .uncached = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_no_claim}};
struct culet_cache culet_cache_exited = {
    .uncached = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_no_claim}};

_Thread_local struct culet_cache *culet_cache = &culet_cache_none;

struct culet_lock culet_registry_lock;
static struct culet_cache *first; /* [registry lock, as all below] */
static size_t threads;
static size_t created;

CULET_SELFMAP_EXPORT(threads, culet_selfmap_threads);

struct culet_registry_counts culet_registry_add(struct culet_cache *cache)
{
    culet_lock(&culet_registry_lock);
    struct culet_registry_counts before = {.threads = threads++, .created = created++};
    cache->prev = NULL;
    cache->next = first;
    if (first)
        first->prev = cache;
    first = cache;
    culet_unlock(&culet_registry_lock);
    return before;
}

void culet_registry_remove(struct culet_cache *cache)
{
    if (cache->prev)
        cache->prev->next = cache->next;
    else
        first = cache->next;
    if (cache->next)
        cache->next->prev = cache->prev;
    threads--;
}

struct culet_cache *culet_registry_first(void)
{
    return first;
}

void culet_registry_wait_all(void (*wait)(_Atomic uint32_t *busy))
{
    culet_lock(&culet_registry_lock);
    for (struct culet_cache *cache = first; cache; cache = cache->next)
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
