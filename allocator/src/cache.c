#include "cache.h"

#include "bell.h"
#include "bias.h"
#include "lock.h"
#include "meta.h"
#include "pages.h"
#include "shown.h"

#include <pthread.h>
#include <string.h>

/* Requests by the slow path between two looks at whether a small heap should be tidied, and whether parking pays. */
#define REFILLS 64

/* Requests by the slow path after which a thread has blocks parked from then on, though the heap is small. `ruby -e 1`
 * makes some 4,400. */
#define PARK_AFTER 8192

/* Blocks of each class that a thread takes singly before it claims a unit of the class, if it is not the only thread:
 * what a thread that soon ends, or does little, would claim lies in pages of its own. That is much for a heap that has
 * not been large. Of the first threads only: where they come and go all the time a claim is the cheaper way. */
#define SINGLE 8
#define SINGLE_THREADS 64

struct culet_lock culet_registry_lock;
static struct culet_cache *registry; /* [registry lock] all threads' caches */
static size_t threads;               /* [registry lock] */
static size_t begun;                 /* [registry lock] threads that ever had a cache */
static pthread_key_t key;
static bool key_made;

CULET_SHOW(threads, culet_shown_threads);

/* The cache that holds nothing, of threads that have not allocated yet... */
static struct culet_cache none = {.guest = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_nothing}};
/* ... and of those that are ending, or could not get one: they take block by block. */
static struct culet_cache ended = {.guest = true, .claim[0 ... CULET_CLASSES - 1] = {.word = &culet_nothing}};

_Thread_local struct culet_cache *culet_cache = &none;

static void empty_parks(struct culet_cache *cache, bool owner)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        if (culet_park_count(&cache->park[klass]))
            culet_park_empty(&cache->park[klass], klass, owner);
}

static bool parks_anything(const struct culet_cache *cache)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        if (culet_park_count(&cache->park[klass]))
            return true;
    return false;
}

/* By its thread; or by a forked child that does not have the thread. */
static void give_up_claims(struct culet_cache *cache)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_bin_return(cache, klass);
}

static void give_up(struct culet_cache *cache)
{
    bool owner = culet_bias_enter(cache);
    empty_parks(cache, owner);
    culet_bias_leave(cache);
    give_up_claims(cache);
}

static void forget(struct culet_cache *cache)
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

    give_up(cache);
    culet_bias_forget(cache);
    culet_cache = &ended;
    culet_lock(&culet_registry_lock);
    forget(cache);
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
        /* Of a thread that a forked child does not have. */
        if (culet_park_count(&cache->park[klass]))
            atomic_store_explicit(&cache->park[klass].count, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&cache->busy, 0, memory_order_relaxed);
    cache->guest = false;
    atomic_store_explicit(&cache->visits, 0, memory_order_relaxed);
    cache->visited = UINT32_MAX;
    cache->refills = 0;
    cache->emptying = false;
    culet_lock(&culet_registry_lock);
    bool single = threads && begun < SINGLE_THREADS && !culet_bell_large();
    memset(cache->single, single ? SINGLE : 0, sizeof cache->single);
    begun++;
    cache->prev = NULL;
    cache->next = registry;
    if (registry)
        registry->prev = cache;
    registry = cache;
    threads++;
    culet_unlock(&culet_registry_lock);
    return cache;
}

/* The thread's first request. Without a key nobody would give back what an ended thread holds, so then
 * there are no caches. The cache is in place before pthread_setspecific, which may allocate. */
static void begin_thread(void)
{
    struct culet_cache *cache;

    culet_cache = &ended;
    if (!key_made || !(cache = create()))
        return;
    culet_cache = cache;
    if (pthread_setspecific(key, cache) != 0)
        thread_ends(cache);
}

/* The block parked last; NULL when there is none. */
static void *take_parked(struct culet_cache *cache, unsigned klass)
{
    struct culet_park *park = &cache->park[klass];

    bool owner = culet_bias_enter(cache);
    uint64_t count = culet_park_count(park);
    void *block = count ? culet_park_pop(park, count, owner) : NULL;
    culet_bias_leave(cache);
    return block;
}

static void look_around(struct culet_cache *cache)
{
    if (!culet_size_class_parks() && (cache->refills >= PARK_AFTER || culet_bell_large()))
        culet_size_class_park();
    if (culet_bin_untidy()) {
        /* What the thread claims next are the holes in units that are in use anyway. */
        give_up(cache);
        culet_bin_tidy();
    }
}

static void *take_from_bin(unsigned klass)
{
    struct culet_cache *cache = culet_cache;
    if (cache == &ended)
        return culet_bin_take(klass);
    if (++cache->refills % REFILLS == 0)
        look_around(cache);
    /* Where a unit has one or two blocks a claim would only keep them from others. */
    if (culet_classes[klass].unit_shift < 2)
        return culet_bin_take(klass);
    if (cache->single[klass]) {
        cache->single[klass]--;
        return culet_bin_take(klass);
    }
    culet_bias_visit(cache);
    return culet_bin_claim(cache, klass);
}

void *culet_cache_refill(unsigned klass)
{
    if (CULET_UNLIKELY(culet_cache == &none))
        begin_thread();
    void *block = NULL;
    if (culet_park_count(&culet_cache->park[klass]))
        block = take_parked(culet_cache, klass);
    if (!block)
        block = take_from_bin(klass);
    /* Out of memory: what others have parked may help. */
    if (CULET_UNLIKELY(!block) && culet_cache_empty_parks(true))
        block = take_from_bin(klass);
    return block;
}

void culet_cache_flush(void)
{
    if (culet_cache != &none && culet_cache != &ended)
        give_up(culet_cache);
}

/* Whether the thread has parked something and had no visit since this was asked of it last. A thread that lives
 * from what it has parked has none either: it loses that, which costs it little. [registry lock] */
static bool is_idle(struct culet_cache *cache)
{
    uint32_t visits = atomic_load_explicit(&cache->visits, memory_order_relaxed);
    bool idle = cache->visited == visits;

    cache->visited = visits;
    return idle && parks_anything(cache);
}

/* Empties one thread's. Its own thread is not inside, but may be ending, and gone. */
static void empty_one(void)
{
    culet_lock(&culet_registry_lock);
    for (struct culet_cache *cache = registry; cache; cache = cache->next)
        if (cache->emptying) {
            cache->emptying = false;
            empty_parks(cache, true);
            break;
        }
    culet_unlock(&culet_registry_lock);
}

/* Marks them. Returns how many. */
static size_t choose(bool all)
{
    size_t chosen = 0;

    culet_lock(&culet_registry_lock);
    for (struct culet_cache *cache = registry; cache; cache = cache->next) {
        cache->emptying = all ? parks_anything(cache) : is_idle(cache);
        chosen += cache->emptying;
    }
    culet_unlock(&culet_registry_lock);
    return chosen;
}

bool culet_cache_empty_parks(bool all)
{
    size_t chosen = choose(all);

    for (size_t i = 0; i < chosen; i++)
        if (!culet_bias_alone(empty_one))
            return false;
    return chosen != 0;
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

void culet_cache_adopt(void)
{
    struct culet_cache *next;

    for (struct culet_cache *cache = registry; cache; cache = next) {
        next = cache->next;
        if (cache == culet_cache)
            continue;
        give_up_claims(cache);
        /* What it has parked culet_bin_reconcile frees; its stacks are left as they are, shared with the parent. */
        forget(cache);
        culet_meta_put(CULET_META_CACHE, cache);
    }
}
