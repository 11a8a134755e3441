#include "bin.h"

#include "bias.h"
#include "lock.h"
#include "pages.h"
#include "size_class.h"
#include "slab.h"

_Atomic uint64_t culet_nothing;

static struct culet_bin bins[CULET_CLASSES];

/* The heap's owner needs no lock; and lets nobody else in. */
static bool enter(struct culet_bin *bin)
{
    bool owner = culet_bias_enter(culet_cache);

    if (!owner)
        culet_lock(&bin->lock);
    return owner;
}

static void leave(struct culet_bin *bin, bool owner)
{
    if (!owner)
        culet_unlock(&bin->lock);
    culet_bias_leave(culet_cache);
}

/* ---- the list of slabs that have a free block [bin lock] ---- */

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

/* Whether nothing of the slab is used or held by anybody. */
static bool idle(const struct culet_slab *slab)
{
    return !slab->claims && slab->empty == (uint16_t)((2u << culet_slab_class(slab)->last) - 1);
}

static void destroy(struct culet_bin *bin, struct culet_slab *slab)
{
    unlist(bin, slab);
    bin->slabs--;
    culet_slab_destroy(slab);
}

/* Of the tiny classes, which programs use all the time, one idle slab is kept where the bin has no other with
 * a free block: the next request needs it. */
static void destroy_if_idle(struct culet_bin *bin, struct culet_slab *slab)
{
    bool needed = bin->first == slab && !slab->next && bin <= &bins[CULET_TINY_CLASSES];

    if (idle(slab) && !needed)
        destroy(bin, slab);
}

/* Brings a unit's bits in the slab's masks up to its live word. */
static void update(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    uint64_t live = atomic_load_explicit(&slab->unit[unit].live, memory_order_acquire);
    uint16_t bit = (uint16_t)(1u << unit);

    if (live == culet_class_full(culet_slab_class(slab), unit))
        slab->available &= (uint16_t)~bit;
    else
        slab->available |= bit;
    if (live == 0)
        slab->empty |= bit;
    else
        slab->empty &= (uint16_t)~bit;
    if (slab->available && !slab->listed)
        enlist(bin, slab);
    else if (!slab->available && slab->listed)
        unlist(bin, slab);
}

/* A slab with a unit that is free to claim (or, for `any`, with any free block), made when there is none. */
static struct culet_slab *find_slab(struct culet_bin *bin, unsigned klass, bool any)
{
    for (struct culet_slab *slab = bin->first; slab; slab = slab->next)
        if (any ? slab->available : slab->available & ~slab->claims)
            return slab;

    struct culet_slab *slab = culet_slab_create(klass);
    if (slab) {
        enlist(bin, slab);
        bin->slabs++;
    }
    return slab;
}

/* Takes `wanted` of the free bits of a unit; returns those it got. */
static uint64_t take_bits(struct culet_bin *bin, struct culet_slab *slab, unsigned unit, uint64_t wanted)
{
    uint64_t before = atomic_fetch_or_explicit(&slab->unit[unit].live, wanted, memory_order_acq_rel);

    slab->dirty |= culet_slab_granules(slab, unit);
    update(bin, slab, unit);
    return wanted & ~before;
}

static void *block_of(const struct culet_slab *slab, unsigned unit, unsigned bit)
{
    const struct culet_class *c = culet_slab_class(slab);
    return (void *)(slab->owner.start + (((size_t)unit << c->unit_shift) + bit) * c->size);
}

/* What holds of a slab whatever other threads free meanwhile. [bin lock] */
static void check_masks(struct culet_slab *slab)
{
    for (unsigned u = 0; u <= culet_slab_class(slab)->last; u++) {
        uint64_t claimed = slab->unit[u].claimed, live = slab->unit[u].live;
        if (claimed & ~live || live & ~culet_class_full(culet_slab_class(slab), u))
            __builtin_trap();
        if (claimed && !(slab->claims >> u & 1))
            __builtin_trap();
    }
    if (slab->listed != (slab->available != 0) || slab->available >> culet_slab_class(slab)->last >> 1)
        __builtin_trap();
}

#ifdef CULET_DEBUG
#define DEBUG_CHECK(slab) check_masks(slab)
#else
#define DEBUG_CHECK(slab) ((void)0)
#endif

/* ---- claims ---- */

static unsigned unit_of(const struct culet_claim *claim, const struct culet_slab *slab)
{
    return (unsigned)(((uintptr_t)claim->word - (uintptr_t)slab->unit) / sizeof slab->unit[0]);
}

static void release(struct culet_bin *bin, struct culet_cache *cache, unsigned klass)
{
    struct culet_claim *claim = &cache->claim[klass];
    struct culet_slab *slab = cache->slab[klass];

    if (!slab)
        return;
    unsigned unit = unit_of(claim, slab);
    uint64_t rest = atomic_load_explicit(claim->word, memory_order_relaxed);
    atomic_store_explicit(claim->word, 0, memory_order_relaxed);
    claim->word = &culet_nothing;
    cache->slab[klass] = NULL;
    slab->claims &= (uint16_t) ~(1u << unit);
    if (rest)
        atomic_fetch_and_explicit(&slab->unit[unit].live, ~rest, memory_order_acq_rel);
    update(bin, slab, unit);
    if (slab->listed)
        destroy_if_idle(bin, slab);
}

/* One block from any unit that has one, a claimed one too; NULL when there is none. */
static void *take_one(struct culet_bin *bin, unsigned klass)
{
    struct culet_slab *slab = bin->first;
    if (!slab)
        return NULL;

    unsigned unit = (unsigned)__builtin_ctz(slab->available);
    uint64_t live = atomic_load_explicit(&slab->unit[unit].live, memory_order_relaxed);
    uint64_t free = culet_class_full(&culet_classes[klass], unit) & ~live;
    take_bits(bin, slab, unit, free & -free);
    DEBUG_CHECK(slab);
    return block_of(slab, unit, (unsigned)__builtin_ctzll(free));
}

void *culet_bin_claim(struct culet_cache *cache, unsigned klass)
{
    struct culet_bin *bin = &bins[klass];
    void *block = NULL;

    bool owner = enter(bin);
    release(bin, cache, klass);
    struct culet_slab *slab = find_slab(bin, klass, false);
    if (CULET_UNLIKELY(!slab)) {
        block = take_one(bin, klass);
    } else {
        unsigned unit = (unsigned)__builtin_ctz(slab->available & ~slab->claims);
        uint64_t got = take_bits(bin, slab, unit, culet_class_full(culet_slab_class(slab), unit));
        slab->claims |= (uint16_t)(1u << unit);
        cache->slab[klass] = slab;
        cache->claim[klass].word = &slab->unit[unit].claimed;
        cache->claim[klass].base = (uintptr_t)block_of(slab, unit, 0);
        block = block_of(slab, unit, (unsigned)__builtin_ctzll(got));
        atomic_store_explicit(&slab->unit[unit].claimed, got & (got - 1), memory_order_relaxed);
        DEBUG_CHECK(slab);
    }
    leave(bin, owner);
    return block;
}

void culet_bin_return(struct culet_cache *cache, unsigned klass)
{
    struct culet_bin *bin = &bins[klass];

    if (!cache->slab[klass])
        return;
    bool owner = enter(bin);
    release(bin, cache, klass);
    leave(bin, owner);
}

void *culet_bin_take(unsigned klass)
{
    struct culet_bin *bin = &bins[klass];

    bool owner = enter(bin);
    void *block = find_slab(bin, klass, true) ? take_one(bin, klass) : NULL;
    leave(bin, owner);
    return block;
}

void culet_bin_note(unsigned klass, struct culet_slab *slab, unsigned unit, bool owner)
{
    struct culet_bin *bin = &bins[klass];

    if (!owner)
        culet_lock(&bin->lock);
    /* Between the free and here somebody else may have freed the rest, and the slab may be gone. */
    if (atomic_load_explicit(&slab->owner.klass, memory_order_relaxed) == klass) {
        update(bin, slab, unit);
        DEBUG_CHECK(slab);
        if (slab->listed)
            destroy_if_idle(bin, slab);
    }
    if (!owner)
        culet_unlock(&bin->lock);
}

/* ---- the whole bin ---- */

size_t culet_bin_trim(unsigned klass)
{
    struct culet_bin *bin = &bins[klass];
    size_t returned = 0;

    bool owner = enter(bin);
    for (struct culet_slab *slab = bin->first, *next; slab; slab = next) {
        next = slab->next;
        if (idle(slab))
            destroy(bin, slab);
        else
            returned += culet_slab_purge(slab);
    }
    leave(bin, owner);
    return returned;
}

static void count_slab(struct culet_slab *slab, void *data)
{
    struct culet_bin_figures *figures = (struct culet_bin_figures *)data + slab->owner.klass;

    figures->slabs++;
    figures->blocks += culet_slab_class(slab)->count;
    figures->live += culet_slab_live(slab);
    for (unsigned u = 0; u <= culet_slab_class(slab)->last; u++)
        figures->claimed +=
            (size_t)__builtin_popcountll(atomic_load_explicit(&slab->unit[u].claimed, memory_order_relaxed));
}

void culet_bin_figures(struct culet_bin_figures figures[CULET_CLASSES])
{
    culet_lock(&culet_pages_lock);
    culet_slab_each(count_slab, figures);
    culet_unlock(&culet_pages_lock);
}

void culet_bin_lock_all(void)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_lock(&bins[klass].lock);
}

void culet_bin_unlock_all(void)
{
    for (unsigned klass = CULET_CLASSES; --klass > 0;)
        culet_unlock(&bins[klass].lock);
}

void culet_bin_reset_all(void)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_lock_reset(&bins[klass].lock);
}

static void reconcile(struct culet_slab *slab, void *data)
{
    (void)data;
    for (unsigned u = 0; u <= culet_slab_class(slab)->last; u++)
        update(&bins[slab->owner.klass], slab, u);
}

void culet_bin_reconcile(void)
{
    culet_lock(&culet_pages_lock);
    culet_slab_each(reconcile, NULL);
    culet_unlock(&culet_pages_lock);
}

/* With no free in flight, the rest of the invariants. */
static void check_slab(struct culet_slab *slab, void *data)
{
    (void)data;
    check_masks(slab);
    for (unsigned u = 0; u <= culet_slab_class(slab)->last; u++) {
        uint64_t live = slab->unit[u].live, full = culet_class_full(culet_slab_class(slab), u);
        if ((slab->available >> u & 1) != (live != full) || (slab->empty >> u & 1) != (live == 0))
            __builtin_trap();
    }
}

void culet_bin_check(void)
{
    culet_bin_lock_all();
    culet_lock(&culet_pages_lock);
    culet_slab_each(check_slab, NULL);
    culet_unlock(&culet_pages_lock);
    culet_bin_unlock_all();
}
