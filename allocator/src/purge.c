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
    bool idle_only;
    struct culet_purged done;
} purge;

static _Atomic size_t reclaimed; /* bytes that culet_purge_small_heap has returned */

/* ---- inside the arena ---- */

static bool used_lately(const struct culet_arena *arena, const struct culet_slab *slab)
{
    return purge.idle_only && slab->span.pass == arena->pass;
}

/* Whether any pages were taken. */
static bool take(struct culet_arena *arena, struct culet_slab *slab)
{
    uint64_t pages = culet_slab_free_pages(slab);

    if (!pages)
        return false;
    if (used_lately(arena, slab)) {
        purge.done.left = true;
        return false;
    }
    culet_slab_take_pages(slab, pages);
    slab->purging = true;
    purge.item[purge.items++] = (struct item){slab, pages, 0};
    purge.pages += (size_t)__builtin_popcountll(pages);
    return true;
}

/* A current unit that has free pages, or has not been used lately, is not current any more: requests would go on in it
 * without marking its pages as dirty again. A claim is given back, since its blocks keep a slab. */
static void visit_current(struct culet_arena *arena, unsigned klass)
{
    struct culet_slab *slab = arena->current[klass].slab;

    /* Pages of bins that the process does not use stay clean. */
    if (atomic_load_explicit(&arena->bin[klass].lent, memory_order_relaxed))
        atomic_store_explicit(&arena->bin[klass].lent, 0, memory_order_relaxed);
    if (!slab || (!used_lately(arena, slab) && (culet_slab_free_pages(slab) || culet_slab_is_free(slab))))
        culet_bin_drop_current(arena, klass);
}

/* Where a purge goes on after a slice. */
struct cursor {
    unsigned klass;
    unsigned slabs; /* at the front of the class's list that were visited and not purged; purged ones move to its end */
};

static bool slice_full(unsigned visited)
{
    return visited >= CULET_PURGE_VISITS || purge.items == CULET_PURGE_SLICE_SLABS ||
           purge.pages >= CULET_PURGE_SLICE_BYTES >> CULET_PAGE_SHIFT;
}

/* Lists change between slices: at worst a slab is left for the next purge. */
static void fill_slice(struct culet_arena *arena, struct cursor *at)
{
    unsigned visited = 0;

    for (; at->klass < CULET_CLASSES; at->klass++, at->slabs = 0) {
        if (slice_full(visited++))
            return;
        if (!at->slabs) {
            culet_bin_flush_recent(arena, at->klass);
            visit_current(arena, at->klass);
        }
        struct culet_slab *slab = atomic_load_explicit(&arena->bin[at->klass].first, memory_order_relaxed), *next;
        for (unsigned i = 0; slab && i < at->slabs; i++)
            slab = slab->next;
        for (; slab; slab = next) {
            if (slice_full(visited++))
                return;
            next = slab->next;
            if (slab == arena->current[at->klass].slab) {
                purge.done.left |= purge.idle_only;
                at->slabs++;
                continue;
            }
            if (!used_lately(arena, slab) && culet_slab_is_free(slab)) {
                culet_bin_destroy(arena, slab);
                continue;
            }
            at->slabs += !take(arena, slab);
        }
    }
}

static void give_back(struct culet_arena *arena, struct cursor *at)
{
    for (unsigned i = 0; i < purge.items; i++) {
        struct culet_slab *slab = purge.item[i].slab;
        unsigned klass = atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
        /* A unit that became current or recent meanwhile would be used without marking the returned pages. */
        culet_bin_flush_recent(arena, klass);
        if (arena->current[klass].slab == slab)
            culet_bin_drop_current(arena, klass);
        culet_slab_give_pages(slab, purge.item[i].pages);
        slab->dirty &= ~purge.item[i].returned;
        slab->purging = false;
        culet_bin_list_available(arena, slab);
        if (purge.item[i].returned)
            culet_bin_move_to_end(arena, slab);
        else
            at->slabs++;
    }
    purge.items = 0;
    purge.pages = 0;
}

/* ---- outside ---- */

/* Pages that are not resident may be in swap, so they are returned as well. Pages that the kernel does not take back
 * stay dirty. */
static void return_pages(struct item *item)
{
    uint64_t resident = culet_os_resident(item->slab->span.start, culet_slab_class(item->slab)->pages);

    item->returned = culet_slab_return_pages(item->slab, item->pages);
    purge.done.bytes += (size_t)__builtin_popcountll(item->returned & resident) * CULET_PAGE;
}

static void purge_arena(struct culet_arena *arena)
{
    struct cursor at = {.klass = 1};

    if (!culet_arena_enter_serviced(arena)) {
        purge.done.left = true;
        return;
    }
    atomic_store_explicit(&arena->active, false, memory_order_relaxed);
    culet_bin_collect(arena);
    do {
        fill_slice(arena, &at);
        culet_arena_leave_serviced(arena);
        for (unsigned i = 0; i < purge.items; i++)
            return_pages(&purge.item[i]);
        /* The holder may be inside, and not run, for as long as other threads keep its processor. */
        while (!culet_arena_enter_serviced(arena))
            culet_os_pause(100);
        give_back(arena, &at);
    } while (at.klass < CULET_CLASSES);
    if (purge.idle_only)
        arena->pass++;
    culet_arena_leave_serviced(arena);
}

struct culet_purged culet_purge(bool idle_only)
{
    /* Another library's fork handler: the arenas are frozen. */
    if (atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire) && culet_lock_forking())
        return (struct culet_purged){.left = true};
    culet_lock(&culet_purge_lock);
    purge.idle_only = idle_only;
    purge.done = (struct culet_purged){0};
    for (unsigned i = 0; i < culet_arena_count(); i++)
        purge_arena(culet_arena(i));
    struct culet_purged done = purge.done;
    culet_lock(&culet_pages_lock);
    culet_pages_count_purged(done.bytes);
    culet_unlock(&culet_pages_lock);
    culet_unlock(&culet_purge_lock);
    return done;
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

/* ---- small heaps ---- */

static size_t free_bytes(void)
{
    size_t pages = 0;
    struct culet_arena *arena = culet_arena_enter();

    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        const struct culet_slab *slab = atomic_load_explicit(&arena->bin[klass].first, memory_order_relaxed);
        culet_bin_flush_recent(arena, klass);
        for (; slab; slab = slab->next)
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

void culet_purge_small_heap(void)
{
    if (CULET_LIKELY(++culet_thread.refills % CULET_SMALL_HEAP_CHECK_REFILLS) || !small_heap() ||
        free_bytes() <= CULET_SMALL_HEAP_KEEP_BYTES)
        return;
    reclaim();
}

void culet_purge_after_thread(void)
{
    if (small_heap() && culet_arena_count() > 1)
        reclaim();
}
