#include "purge.h"

#include "arena.h"
#include "bin.h"
#include "lock.h"
#include "os.h"
#include "pages.h"
#include "reclaim_policy.h"
#include "slab.h"
#include "wakeup.h"

struct culet_lock culet_purge_lock;

/* Pages of a slab whose blocks are taken. */
struct item {
    struct culet_slab *slab;
    uint64_t pages;
    uint64_t returned; /* those that the kernel took back */
};

/* [purge lock] */
static struct {
    struct item item[CULET_PURGE_SLICE_SLABS];
    unsigned items;
    size_t pages;
    size_t slice; /* pages that are purged at a time */
    bool idle_only;
    bool slabs_only;
    struct culet_purged done;
} purge;

static _Atomic size_t reclaimed; /* bytes that culet_purge_small_heap has returned */

/* ---- inside the arena ---- */

static bool used_lately(const struct culet_arena *arena, const struct culet_slab *slab)
{
    return purge.idle_only && slab->span.purge_epoch == arena->purge_epoch;
}

static void take(struct culet_arena *arena, struct culet_slab *slab)
{
    uint64_t pages = purge.slabs_only ? 0 : culet_slab_free_pages(slab);

    if (!pages)
        return;
    if (used_lately(arena, slab)) {
        purge.done.left = true;
        return;
    }
    culet_slab_take_pages(slab, pages);
    slab->purging = true;
    purge.item[purge.items++] = (struct item){slab, pages, 0};
    purge.pages += (size_t)__builtin_popcountll(pages);
}

/* A current unit that has free pages, or has not been used lately, is not current any more: requests would go on in it
 * without marking its pages as dirty again. */
static void visit_current(struct culet_arena *arena, unsigned klass)
{
    struct culet_slab *slab = arena->current[klass].slab;

    /* Pages of bins that the process does not use stay clean. */
    if (atomic_load_explicit(&arena->bin[klass].adoptions, memory_order_relaxed))
        atomic_store_explicit(&arena->bin[klass].adoptions, 0, memory_order_relaxed);
    if (!slab || !(culet_bin_has_claim(arena, klass) || culet_slab_free_pages(slab) || culet_slab_is_free(slab)))
        return;
    if (used_lately(arena, slab))
        purge.done.left = true;
    else
        culet_bin_drop_current(arena, klass);
}

/* The position of a purge after a slice. Another purge of a class whose visit has begun ends the visit: growth
 * continues with the next class. */
struct cursor {
    unsigned klass;
    bool begun; /* the class: it goes on at the bin's `unvisited` */
};

static bool slice_full(unsigned visited)
{
    return visited >= CULET_PURGE_VISITS || purge.items == CULET_PURGE_SLICE_SLABS || purge.pages >= purge.slice;
}

/* The cache lines of the descriptor that a visit reads of most slabs. The visit of another one hides the time until
 * they arrive. */
static void prefetch(const struct culet_slab *slab)
{
    __builtin_prefetch(slab);
    __builtin_prefetch(&slab->unit[2]);
    __builtin_prefetch(&slab->next);
}

static void begin_class(struct culet_arena *arena, unsigned klass)
{
    culet_bin_flush_recent(arena, klass);
    visit_current(arena, klass);
    arena->bin[klass].unvisited = atomic_load_explicit(&arena->bin[klass].first, memory_order_relaxed);
}

static void visit(struct culet_arena *arena, unsigned klass, struct culet_slab *slab)
{
    arena->bin[klass].unvisited = slab->next;
    purge.done.visits++;
    if (slab->next)
        prefetch(slab->next);
    /* visit_current has left it: nothing in it is to be returned yet. */
    if (slab == arena->current[klass].slab)
        return;
    if (!used_lately(arena, slab) && culet_slab_is_free(slab))
        culet_bin_destroy(arena, slab);
    else
        take(arena, slab);
}

/* Purged slabs move to the end of their list, and may be visited once more. */
static void fill_slice(struct culet_arena *arena, struct cursor *at)
{
    struct culet_slab *slab;
    unsigned visited = 0;

    for (; at->klass < CULET_CLASSES; at->klass++, at->begun = false) {
        if (slice_full(visited++))
            return;
        if (!at->begun)
            begin_class(arena, at->klass);
        at->begun = true;
        while ((slab = arena->bin[at->klass].unvisited)) {
            if (slice_full(visited++))
                return;
            visit(arena, at->klass, slab);
        }
    }
}

static void give_back(struct culet_arena *arena)
{
    for (unsigned i = 0; i < purge.items; i++) {
        struct culet_slab *slab = purge.item[i].slab;
        unsigned klass = atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
        /* A unit that became current or recent meanwhile would be used without marking the returned pages. */
        culet_bin_flush_recent(arena, klass);
        if (arena->current[klass].slab == slab)
            culet_bin_drop_current(arena, klass);
        culet_slab_give_pages(slab, purge.item[i].pages);
        slab->dirty &= (uint32_t)~purge.item[i].returned;
        slab->purging = false;
        culet_bin_list_available(arena, slab);
        if (purge.item[i].returned)
            culet_bin_move_to_end(arena, slab);
    }
    purge.items = 0;
    purge.pages = 0;
}

/* ---- outside ---- */

/* Runs of pages that go back by one call. */
#define RUNS 64
struct runs {
    unsigned count;
    struct culet_os_range range[RUNS];
    struct {
        struct item *item;
        uint64_t pages;
    } of[RUNS];
};

static void return_runs(struct runs *runs)
{
    culet_os_purge_ranges(runs->range, runs->count);
    for (unsigned i = 0; i < runs->count; i++)
        if (runs->range[i].purged)
            runs->of[i].item->returned |= runs->of[i].pages;
    runs->count = 0;
}

static void add_runs(struct runs *runs, struct item *item)
{
    for (uint64_t left = item->pages; left;) {
        unsigned first = (unsigned)__builtin_ctzll(left), count = (unsigned)__builtin_ctzll(~(left >> first));
        uint64_t run = ((UINT64_C(1) << count) - 1) << first;
        if (runs->count == RUNS)
            return_runs(runs);
        runs->range[runs->count] =
            (struct culet_os_range){culet_slab_pages(item->slab) + first * CULET_PAGE, count * CULET_PAGE, false};
        runs->of[runs->count].item = item;
        runs->of[runs->count].pages = run;
        runs->count++;
        left &= ~run;
    }
}

/* Pages that the kernel does not take back stay dirty. */
static void return_pages(void)
{
    struct runs runs = {.count = 0};

    for (unsigned i = 0; i < purge.items; i++)
        add_runs(&runs, &purge.item[i]);
    return_runs(&runs);
    for (unsigned i = 0; i < purge.items; i++)
        purge.done.bytes += (size_t)__builtin_popcountll(purge.item[i].returned) * CULET_PAGE;
}

#define ENTER_ATTEMPTS 1000 /* of a millisecond */

/* Waits for a holder that is inside, and may not run while other threads keep its processor, for a second. */
static bool enter_patiently(struct culet_arena *arena)
{
    for (unsigned attempt = 0; !culet_arena_enter_for_purge(arena); attempt++) {
        if (attempt == ENTER_ATTEMPTS)
            return false;
        culet_os_pause(1000);
    }
    return true;
}

static bool begin(struct culet_arena *arena)
{
    bool entered = purge.slabs_only ? enter_patiently(arena) : culet_arena_enter_for_purge(arena);

    if (entered)
        culet_bin_collect(arena);
    else
        purge.done.left = true;
    return entered;
}

/* Inside the arena, and left for the system calls. */
static void purge_slice(struct culet_arena *arena, struct cursor *at)
{
    fill_slice(arena, at);
    culet_arena_leave_after_purge(arena);
    return_pages();
    /* The holder may be inside, and not run, for as long as other threads keep its processor. */
    while (!culet_arena_enter_for_purge(arena))
        culet_os_pause(100);
    give_back(arena);
}

static void purge_arena(struct culet_arena *arena)
{
    struct cursor at = {.klass = 1};

    if (!begin(arena))
        return;
    if (!purge.slabs_only)
        atomic_store_explicit(&arena->active, false, memory_order_relaxed);
    do
        purge_slice(arena, &at);
    while (at.klass < CULET_CLASSES);
    if (purge.idle_only)
        arena->purge_epoch++;
    culet_arena_leave_after_purge(arena);
}

static void set_up(bool idle_only)
{
    purge.idle_only = idle_only;
    purge.slabs_only = false;
    purge.slice = CULET_PURGE_SLICE_BYTES >> CULET_PAGE_SHIFT;
    purge.done = (struct culet_purged){0};
}

/* Returns the used pages of the heap. */
static size_t end(void)
{
    culet_lock(&culet_pages_lock);
    culet_pages_count_purged(purge.done.bytes);
    size_t used = culet_pages_stats().used;
    culet_unlock(&culet_pages_lock);
    return used;
}

struct culet_purged culet_purge(bool idle_only)
{
    /* Another library's fork handler: the arenas are frozen. */
    if (culet_lock_forking())
        return (struct culet_purged){.left = true};
    culet_lock(&culet_purge_lock);
    set_up(idle_only);
    for (unsigned i = 0; i < culet_arena_count(); i++)
        purge_arena(culet_arena(i));
    end();
    struct culet_purged done = purge.done;
    culet_unlock(&culet_purge_lock);
    return done;
}

bool culet_purge_free_slabs(void)
{
    if (culet_lock_forking())
        return false;
    culet_lock(&culet_purge_lock);
    set_up(false);
    purge.slabs_only = true;
    for (unsigned i = 0; i < culet_arena_count(); i++)
        purge_arena(culet_arena(i));
    culet_unlock(&culet_purge_lock);
    culet_pages_wait_for_purge();
    return true;
}

bool culet_purge_anything_used(void)
{
    /* A thread that frees into another thread's arena does not set `active`: its store could come before the one above,
     * which clears it, although its slab was pushed after the collection. */
    for (unsigned i = 0; i < culet_arena_count(); i++)
        if (atomic_load_explicit(&culet_arena(i)->active, memory_order_relaxed) ||
            atomic_load_explicit(&culet_arena(i)->remote, memory_order_relaxed))
            return true;
    return false;
}

/* ---- the profile starts or ends ---- */

static bool drop_current(struct culet_arena *arena)
{
    if (!enter_patiently(arena))
        return false;
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        if (arena->current[klass].slab)
            culet_bin_drop_current(arena, klass);
    culet_arena_leave_after_purge(arena);
    return true;
}

bool culet_purge_drop_current(void)
{
    bool done = true;

    if (culet_lock_forking())
        return false;
    culet_lock(&culet_purge_lock);
    for (unsigned i = 0; i < culet_arena_count(); i++)
        done &= drop_current(culet_arena(i));
    culet_unlock(&culet_purge_lock);
    return done;
}

/* ---- small heaps ---- */

/* The free pages of the slabs in the thread's arena, in bytes. Stores how many slabs these are. */
static size_t free_bytes(uint32_t *slabs)
{
    size_t pages = 0;
    struct culet_arena *arena = culet_arena_enter();

    *slabs = 0;
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        culet_bin_flush_recent(arena, klass);
        const struct culet_slab *slab = atomic_load_explicit(&arena->bin[klass].first, memory_order_relaxed);
        for (; slab; slab = slab->next, ++*slabs)
            if (slab != arena->current[klass].slab)
                pages += (size_t)__builtin_popcountll(culet_slab_free_pages(slab));
    }
    culet_arena_leave(arena);
    return pages << CULET_PAGE_SHIFT;
}

static bool small_heap(void)
{
    return !culet_wakeup_scavenger_runs() &&
           atomic_load_explicit(&reclaimed, memory_order_relaxed) < CULET_SMALL_HEAP_RECLAIM_MAX;
}

static void reclaim(void)
{
    size_t returned = culet_purge(false).bytes;

    culet_lock(&culet_pages_lock);
    returned += culet_pages_reclaim(CULET_SMALL_HEAP_KEEP_PAGES);
    culet_unlock(&culet_pages_lock);
    atomic_fetch_add_explicit(&reclaimed, returned, memory_order_relaxed);
}

/* The next check comes after as many requests as this one has visited slabs, so checks cost a constant per request. */
static __attribute__((noinline)) void check_small_heap(void)
{
    uint32_t slabs = 0;

    if (small_heap() && free_bytes(&slabs) > CULET_SMALL_HEAP_KEEP_BYTES)
        reclaim();
    culet_thread.refills = slabs > CULET_SMALL_HEAP_CHECK_REFILLS ? slabs : CULET_SMALL_HEAP_CHECK_REFILLS;
}

void culet_purge_small_heap(void)
{
    if (CULET_UNLIKELY(!culet_thread.refills--))
        check_small_heap();
}

void culet_purge_after_thread(void)
{
    if (small_heap() && culet_arena_count() > 1)
        reclaim();
}

/* ---- growth ---- */

/* [purge lock] Where the next purge goes on. */
static struct {
    unsigned arena;
    struct cursor at;
} growth = {.at = {.klass = 1}};

/* New pages after which a purge is due. */
static _Atomic size_t growth_batch = CULET_GROWTH_BATCH_PAGES;

static size_t purged_pages(void)
{
    return purge.done.bytes >> CULET_PAGE_SHIFT;
}

static void purge_next_slice(void)
{
    struct culet_arena *arena = culet_arena(growth.arena);

    if (begin(arena)) {
        purge_slice(arena, &growth.at);
        culet_arena_leave_after_purge(arena);
        if (growth.at.klass < CULET_CLASSES)
            return;
    }
    growth.arena = (growth.arena + 1) % culet_arena_count();
    growth.at = (struct cursor){.klass = 1};
}

static void purge_about(size_t pages)
{
    set_up(false);
    for (unsigned i = 0; i < CULET_GROWTH_SLICES && purged_pages() < pages; i++) {
        if (pages - purged_pages() < purge.slice)
            purge.slice = pages - purged_pages();
        purge_next_slice();
    }
}

/* A purge that finds little delays the next one. */
static size_t next_batch(size_t grown, size_t used)
{
    size_t most = used / CULET_GROWTH_BATCH_SHARE, twice = 2 * grown < most ? 2 * grown : most;

    return purged_pages() < CULET_GROWTH_PURGED_MIN && twice > CULET_GROWTH_BATCH_PAGES ? twice
                                                                                        : CULET_GROWTH_BATCH_PAGES;
}

void culet_purge_on_growth(void)
{
    if (CULET_LIKELY(atomic_load_explicit(&culet_pages_grown, memory_order_relaxed) <
                     atomic_load_explicit(&growth_batch, memory_order_relaxed)) ||
        !culet_wakeup_scavenger_runs() || culet_lock_forking() || !culet_lock_try(&culet_purge_lock))
        return;
    size_t grown = atomic_exchange_explicit(&culet_pages_grown, 0, memory_order_relaxed);
    purge_about(grown);
    atomic_store_explicit(&growth_batch, next_batch(grown, end()), memory_order_relaxed);
    culet_unlock(&culet_purge_lock);
}
