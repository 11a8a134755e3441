#include "bin.h"

#include "abandoned.h"
#include "arena.h"
#include "lock.h"
#include "misuse.h"
#include "pages.h"
#include "reclaim_policy.h"
#include "size_class.h"
#include "slab.h"
#include "wakeup.h"

static uint64_t free_of(const struct culet_slab *slab, unsigned unit)
{
    return atomic_load_explicit(&slab->unit[unit].free, memory_order_relaxed);
}

static unsigned class_of(const struct culet_slab *slab)
{
    return atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
}

/* ---- the list of slabs with available units ---- */

static void enlist(struct culet_bin *bin, struct culet_slab *slab)
{
    slab->prev = NULL;
    slab->next = bin->first;
    if (bin->first)
        bin->first->prev = slab;
    bin->first = slab;
    slab->listed = true;
}

static void unlist(struct culet_bin *bin, struct culet_slab *slab)
{
    if (slab->prev)
        slab->prev->next = slab->next;
    else
        bin->first = slab->next;
    if (slab->next)
        slab->next->prev = slab->prev;
    slab->listed = false;
}

static void set_available(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    slab->available |= (uint16_t)(1u << unit);
    if (!slab->listed)
        enlist(bin, slab);
}

static void clear_available(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    slab->available &= (uint16_t) ~(1u << unit);
    if (!slab->available && slab->listed)
        unlist(bin, slab);
}

/* ---- recent units ---- */

static struct culet_slab *slab_of(uintptr_t recent, unsigned *unit)
{
    *unit = (unsigned)(recent % CULET_UNITS);
    return (struct culet_slab *)(recent - *unit);
}

/* The unit was full and has a free block now. */
static void add_free_unit(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    if (bin->recents < CULET_RECENT)
        bin->recent[bin->recents++] = (uintptr_t)slab | unit;
    else
        set_available(bin, slab, unit);
}

static void forget_recent(struct culet_bin *bin, const struct culet_slab *slab)
{
    uint32_t kept = 0;
    unsigned unit;

    for (uint32_t i = 0; i < bin->recents; i++)
        if (slab_of(bin->recent[i], &unit) != slab)
            bin->recent[kept++] = bin->recent[i];
    bin->recents = kept;
}

static bool is_recent(const struct culet_bin *bin, const struct culet_slab *slab, unsigned unit)
{
    for (uint32_t i = 0; i < bin->recents; i++)
        if (bin->recent[i] == ((uintptr_t)slab | unit))
            return true;
    return false;
}

void culet_bin_flush_recent(struct culet_arena *arena, unsigned klass)
{
    struct culet_bin *bin = &arena->bin[klass];
    unsigned unit;

    while (bin->recents) {
        struct culet_slab *slab = slab_of(bin->recent[--bin->recents], &unit);
        if (free_of(slab, unit) && &slab->unit[unit] != arena->current[klass].unit)
            set_available(bin, slab, unit);
    }
}

/* ---- requests ---- */

static void make_current(struct culet_arena *arena, struct culet_slab *slab, unsigned unit)
{
    unsigned klass = class_of(slab);
    struct culet_current *current = &arena->current[klass];

    current->unit = &slab->unit[unit];
    current->base = culet_slab_address(slab, unit * CULET_UNIT);
    current->size = culet_classes[klass].size;
    current->slab = slab;
    slab->dirty |= culet_slab_unit_pages(slab, unit);
    slab->span.pass = arena->pass;
}

void culet_bin_drop_current(struct culet_arena *arena, unsigned klass)
{
    struct culet_current *current = &arena->current[klass];
    struct culet_slab *slab = current->slab;

    if (!slab)
        return;
    unsigned unit = (unsigned)(current->unit - slab->unit);
    current->unit = &culet_no_unit;
    current->slab = NULL;
    if (free_of(slab, unit))
        set_available(&arena->bin[klass], slab, unit);
}

/* The latest recent unit with a free block; NULL if there is none. */
static struct culet_slab *pop_recent(struct culet_bin *bin, unsigned *unit)
{
    while (bin->recents) {
        struct culet_slab *slab = slab_of(bin->recent[--bin->recents], unit);
        if (CULET_LIKELY(free_of(slab, *unit))) {
            clear_available(bin, slab, *unit);
            return slab;
        }
    }
    return NULL;
}

/* An available unit of the first listed slab; NULL if there is none. */
static struct culet_slab *pop_available(struct culet_bin *bin, unsigned *unit)
{
    struct culet_slab *slab;

    while ((slab = bin->first)) {
        *unit = (unsigned)__builtin_ctz(slab->available);
        clear_available(bin, slab, *unit);
        if (CULET_LIKELY(free_of(slab, *unit)))
            return slab;
    }
    return NULL;
}

static struct culet_slab *create(struct culet_arena *arena, unsigned klass, unsigned *unit)
{
    struct culet_slab *slab = culet_slab_create(arena->number, klass);

    if (!slab)
        return NULL;
    for (unsigned u = 1; u < culet_classes[klass].units; u++)
        set_available(&arena->bin[klass], slab, u);
    *unit = 0;
    return slab;
}

static struct culet_slab *next_unit(struct culet_arena *arena, unsigned klass, unsigned *unit)
{
    struct culet_bin *bin = &arena->bin[klass];
    struct culet_slab *slab = pop_recent(bin, unit);

    if (CULET_LIKELY(slab != NULL))
        return slab;
    if (atomic_load_explicit(&arena->remote, memory_order_relaxed)) {
        culet_bin_collect(arena);
        if ((slab = pop_recent(bin, unit)))
            return slab;
    }
    slab = pop_available(bin, unit);
    return slab ? slab : create(arena, klass, unit);
}

void *culet_bin_get(struct culet_arena *arena, unsigned klass)
{
    void *block = culet_bin_take(arena, klass);
    unsigned unit;

    if (block)
        return block;
    struct culet_slab *slab = next_unit(arena, klass, &unit);
    if (CULET_UNLIKELY(!slab))
        return NULL;
    make_current(arena, slab, unit);
    atomic_store_explicit(&arena->active, true, memory_order_relaxed);
    return culet_bin_take(arena, klass);
}

/* ---- frees ---- */

void culet_bin_destroy(struct culet_arena *arena, struct culet_slab *slab)
{
    struct culet_bin *bin = &arena->bin[class_of(slab)];

    forget_recent(bin, slab);
    if (slab->listed)
        unlist(bin, slab);
    culet_slab_destroy(slab);
}

/* A class keeps the slab of its current unit. It keeps another one that nothing else is listed beside if the scavenger
 * will check whether it was needed, or if it was needed often enough: in a small heap 64 tiny classes would keep up to
 * 64 KiB each. */
static void destroy_if_free(struct culet_arena *arena, struct culet_slab *slab)
{
    unsigned klass = class_of(slab);
    struct culet_bin *bin = &arena->bin[klass];
    bool last = !bin->first || (bin->first == slab && !slab->next);
    bool tiny = culet_size_class_plain(klass) <= CULET_TINY_CLASSES;

    if (slab == arena->current[klass].slab || !culet_slab_is_free(slab))
        return;
    if (last && (culet_wakeup_scavenger_runs() || (tiny && bin->releases >= CULET_SMALL_HEAP_SLAB_RELEASES)))
        return;
    bin->releases += last;
    culet_bin_destroy(arena, slab);
}

void culet_bin_unit_changed(struct culet_arena *arena, struct culet_slab *slab, unsigned unit)
{
    unsigned klass = class_of(slab);
    struct culet_bin *bin = &arena->bin[klass];
    uint64_t free = free_of(slab, unit);

    slab->span.pass = arena->pass;
    if (&slab->unit[unit] == arena->current[klass].unit)
        return;
    if (!(free & (free - 1)))
        add_free_unit(bin, slab, unit);
    if (free == culet_class_all(&culet_classes[klass], unit)) {
        atomic_store_explicit(&arena->active, true, memory_order_relaxed);
        culet_wakeup_notify();
        destroy_if_free(arena, slab);
    }
}

/* ---- frees of threads that hold another arena ----
 *
 * The first free in a unit marks the unit in the slab, the first mark pushes the slab on the arena's stack. The holder
 * takes the whole stack, then each slab's marks, then the units' words. Words are collected by their marks alone, and a
 * block that is not collected is not free: so the slab lives until the freeing thread has marked and pushed it. */

static void push_remote(struct culet_arena *arena, struct culet_slab *slab)
{
    struct culet_slab *first = atomic_load_explicit(&arena->remote, memory_order_relaxed);

    do
        slab->next_remote = first;
    while (!atomic_compare_exchange_weak_explicit(&arena->remote, &first, slab, CULET_ORDER_PUSH_REMOTE,
                                                  memory_order_relaxed));
}

bool culet_bin_free_remote(struct culet_slab *slab, uint32_t block)
{
    unsigned number = culet_block_unit(block);
    struct culet_unit *unit = &slab->unit[number];
    uint64_t bit = culet_block_bit(block);

    if (block >= culet_slab_class(slab)->count || atomic_load_explicit(&unit->free, memory_order_relaxed) & bit)
        return false;
    /* An addition: one instruction on every processor. A bit that is set already is a misuse that ends the process. */
    uint64_t before = atomic_fetch_add_explicit(&unit->remote, bit, CULET_ORDER_FREE_REMOTE);
    if (CULET_UNLIKELY(before & bit))
        return false;
    if (before || culet_abandoned())
        return true;
    uint16_t mark = (uint16_t)(1u << number);
    struct culet_arena *arena = culet_arena(slab->span.arena);
    if (!atomic_fetch_add_explicit(&slab->remote_units, mark, CULET_ORDER_MARK_REMOTE)) {
        push_remote(arena, slab);
        culet_wakeup_notify();
    }
    return true;
}

static void collect_unit(struct culet_arena *arena, struct culet_slab *slab, unsigned unit)
{
    uint64_t remote = atomic_exchange_explicit(&slab->unit[unit].remote, 0, CULET_ORDER_COLLECT);
    uint64_t free = free_of(slab, unit);

    if (CULET_UNLIKELY(free & remote)) {
        culet_arena_leave();
        culet_misuse("free", culet_slab_address(slab, unit * CULET_UNIT + (unsigned)__builtin_ctzll(free & remote)));
    }
    atomic_store_explicit(&slab->unit[unit].free, free | remote, memory_order_relaxed);
    if (&slab->unit[unit] != arena->current[class_of(slab)].unit && !free)
        add_free_unit(&arena->bin[class_of(slab)], slab, unit);
}

void culet_bin_collect(struct culet_arena *arena)
{
    struct culet_slab *next;

    for (struct culet_slab *slab = atomic_exchange_explicit(&arena->remote, NULL, CULET_ORDER_COLLECT); slab;
         slab = next) {
        /* The slab may be pushed again as soon as its marks are taken. */
        next = slab->next_remote;
        unsigned marks = atomic_exchange_explicit(&slab->remote_units, 0, CULET_ORDER_COLLECT_MARKS);
        slab->span.pass = arena->pass;
        for (; marks; marks &= marks - 1)
            collect_unit(arena, slab, (unsigned)__builtin_ctz(marks));
        destroy_if_free(arena, slab);
    }
}

void culet_bin_mark_current(struct culet_arena *arena, struct culet_slab *slab)
{
    const struct culet_current *current = &arena->current[class_of(slab)];

    if (slab == current->slab)
        slab->dirty |= culet_slab_unit_pages(slab, (unsigned)(current->unit - slab->unit));
}

void culet_bin_list_available(struct culet_arena *arena, struct culet_slab *slab)
{
    unsigned klass = class_of(slab);

    for (unsigned u = 0; u < culet_classes[klass].units; u++)
        if (free_of(slab, u) && &slab->unit[u] != arena->current[klass].unit &&
            !is_recent(&arena->bin[klass], slab, u))
            set_available(&arena->bin[klass], slab, u);
}

/* ---- the whole heap ---- */

static void reconcile(struct culet_slab *slab, void *data)
{
    struct culet_arena *arena = culet_arena(slab->span.arena);

    (void)data;
    if (atomic_load_explicit(&slab->remote_units, memory_order_relaxed))
        atomic_store_explicit(&slab->remote_units, 0, memory_order_relaxed);
    for (unsigned u = 0; u < culet_slab_class(slab)->units; u++)
        if (atomic_load_explicit(&slab->unit[u].remote, memory_order_relaxed))
            collect_unit(arena, slab, u);
}

void culet_bin_reconcile(void)
{
    for (unsigned i = 0; i < culet_arena_count(); i++)
        atomic_store_explicit(&culet_arena(i)->remote, NULL, memory_order_relaxed);
    culet_lock(&culet_pages_lock);
    culet_slab_each(reconcile, NULL);
    culet_unlock(&culet_pages_lock);
}

static void check_slab(struct culet_slab *slab, void *data)
{
    const struct culet_class *c = culet_slab_class(slab);
    const struct culet_arena *arena = culet_arena(slab->span.arena);
    const struct culet_bin *bin = &arena->bin[class_of(slab)];

    (void)data;
    if (slab->listed != (slab->available != 0) || slab->available >> c->units || !slab->reciprocal)
        __builtin_trap();
    for (unsigned u = 0; u < CULET_UNITS; u++) {
        uint64_t free = free_of(slab, u), remote = slab->unit[u].remote;
        uint64_t all = u < c->units ? culet_class_all(c, u) : 0;
        bool current = &slab->unit[u] == arena->current[class_of(slab)].unit;
        bool available = slab->available >> u & 1;
        if (free & remote || (free | remote) & ~all || (remote && !(slab->remote_units >> u & 1)))
            __builtin_trap();
        if ((free && !current && !available && !is_recent(bin, slab, u)) || (current && available))
            __builtin_trap();
    }
}

void culet_bin_check(void)
{
    culet_lock(&culet_pages_lock);
    culet_slab_each(check_slab, NULL);
    culet_unlock(&culet_pages_lock);
}
