#include "bin.h"

#include "abandoned.h"
#include "bias.h"
#include "lock.h"
#include "misuse.h"
#include "pages.h"
#include "reclaim_policy.h"
#include "registry.h"
#include "size_class.h"
#include "slab.h"
#include "wakeup.h"

static struct culet_bin bins[CULET_CLASSES];
static _Atomic size_t reclaimed; /* bytes returned by culet_bin_reclaim */

/* The biased thread needs no lock: no other thread is inside. */
static bool enter(struct culet_bin *bin)
{
    bool biased = culet_bias_enter(culet_cache);

    if (!biased)
        culet_lock(&bin->lock);
    return biased;
}

static void leave(struct culet_bin *bin, bool biased)
{
    uintptr_t double_freed = bin->double_freed;

    bin->double_freed = 0;
    if (!biased)
        culet_unlock(&bin->lock);
    culet_bias_leave(culet_cache);
    if (CULET_UNLIKELY(double_freed))
        culet_misuse("free", double_freed);
}

/* ---- the list of slabs that have a free block [bin lock] ---- */

static void enlist(struct culet_bin *bin, struct culet_slab *slab)
{
    slab->prev = NULL;
    slab->next = bin->first;
    if (bin->first)
        bin->first->prev = slab;
    else
        bin->last = slab;
    bin->first = slab;
    bin->listed++;
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
    else
        bin->last = slab->prev;
    bin->listed--;
    slab->listed = false;
}

static void move_to_end(struct culet_bin *bin, struct culet_slab *slab)
{
    if (!slab->next)
        return;
    unlist(bin, slab);
    slab->prev = bin->last;
    slab->next = NULL;
    if (bin->last)
        bin->last->next = slab;
    else
        bin->first = slab;
    bin->last = slab;
    bin->listed++;
    slab->listed = true;
}

/* ---- empty units: how many, and the low-water mark of resident ones [bin lock] ---- */

static uint32_t get(_Atomic uint32_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void set(_Atomic uint32_t *count, uint32_t value)
{
    atomic_store_explicit(count, value, memory_order_relaxed);
}

/* Without the lock the two counts may be of different moments. */
static uint32_t resident_empties(struct culet_bin *bin)
{
    uint32_t empties = get(&bin->empties), clean = get(&bin->clean);

    return empties > clean ? empties - clean : 0;
}

static void add_empties(struct culet_bin *bin, uint32_t units)
{
    set(&bin->empties, get(&bin->empties) + units);
    if (resident_empties(bin) >= CULET_IDLE_UNITS_MIN)
        culet_wakeup_notify();
}

/* The units that were taken count as resident ones, since those are offered first. */
static void remove_empties(struct culet_bin *bin, uint32_t units)
{
    uint32_t left = get(&bin->empties) - units;

    set(&bin->empties, left);
    if (get(&bin->clean) > left)
        set(&bin->clean, left);
    if (resident_empties(bin) < get(&bin->low_water))
        set(&bin->low_water, resident_empties(bin));
}

static void add_clean(struct culet_bin *bin, size_t units)
{
    uint32_t resident = resident_empties(bin);

    set(&bin->clean, get(&bin->clean) + (units < resident ? (uint32_t)units : resident));
}

/* No block of the slab is live and no unit claimed. */
static bool idle(const struct culet_slab *slab)
{
    return !slab->claims && slab->empty == (uint16_t)((2u << culet_slab_class(slab)->last) - 1);
}

static void destroy(struct culet_bin *bin, struct culet_slab *slab)
{
    unlist(bin, slab);
    bin->slabs--;
    remove_empties(bin, culet_slab_class(slab)->last + 1u);
    culet_slab_destroy(slab);
}

/* The bin's only slab with a free block is kept for the next request if the scavenger will check whether it was needed,
 * or if it was needed often enough: in a small heap 64 tiny classes would keep up to 64 KiB each. */
static void destroy_if_idle(struct culet_bin *bin, struct culet_slab *slab)
{
    bool last = bin->first == slab && !slab->next;
    bool tiny = culet_size_class_plain((unsigned)(bin - bins)) <= CULET_TINY_CLASSES;

    if (!idle(slab))
        return;
    if (last && (culet_wakeup_scavenger_runs() || (tiny && bin->slab_releases >= CULET_SMALL_HEAP_SLAB_RELEASES)))
        return;
    bin->slab_releases += last;
    destroy(bin, slab);
}

/* Updates a unit's bits in the slab's masks from its live word. Writes changes only: a forked child updates every slab,
 * and shares most descriptors with its parent. */
static void update(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    uint64_t live = atomic_load_explicit(&slab->unit[unit].live, CULET_ORDER_READ_LIVE);
    uint16_t bit = (uint16_t)(1u << unit);

    if ((live != culet_class_full(culet_slab_class(slab), unit)) != ((slab->available & bit) != 0))
        slab->available ^= bit;
    if ((live == 0) != ((slab->empty & bit) != 0)) {
        slab->empty ^= bit;
        if (live == 0)
            add_empties(bin, 1);
        else
            remove_empties(bin, 1);
    }
    if (slab->available && !slab->listed)
        enlist(bin, slab);
    else if (!slab->available && slab->listed)
        unlist(bin, slab);
}

/* A slab with a unit to claim (with `any`: with a free block, claimed or not); a new one if there is none. */
static struct culet_slab *find_slab(struct culet_bin *bin, unsigned klass, bool any)
{
    for (struct culet_slab *slab = bin->first; slab; slab = slab->next)
        if (any ? slab->available : slab->available & ~slab->claims)
            return slab;

    struct culet_slab *slab = culet_slab_create(klass);
    if (slab) {
        enlist(bin, slab);
        bin->slabs++;
        add_empties(bin, culet_slab_class(slab)->last + 1u);
        if (!slab->dirty)
            add_clean(bin, culet_slab_class(slab)->last + 1u);
    }
    return slab;
}

static void *block_of(const struct culet_slab *slab, unsigned unit, unsigned bit)
{
    const struct culet_class *c = culet_slab_class(slab);
    return (void *)(slab->span.start + (((size_t)unit << c->unit_shift) + bit) * c->size);
}

/* `free`: the free blocks of a unit. A block that is claimed as well was freed by two threads at the same moment, one
 * of which has claimed the unit. Reported in leave, without the lock. [bin lock] */
static void check_free(struct culet_bin *bin, const struct culet_slab *slab, unsigned unit, uint64_t free)
{
    uint64_t both = free & atomic_load_explicit(&slab->unit[unit].claimed, memory_order_relaxed);

    if (CULET_UNLIKELY(both))
        bin->double_freed = (uintptr_t)block_of(slab, unit, (unsigned)__builtin_ctzll(both));
}

/* Makes the free blocks of `wanted` live and returns them. */
static uint64_t take_bits(struct culet_bin *bin, struct culet_slab *slab, unsigned unit, uint64_t wanted, bool biased)
{
    _Atomic uint64_t *live = &slab->unit[unit].live;
    uint64_t before;

    slab->dirty |= culet_slab_unit_pages(culet_slab_class(slab), unit);
    if (CULET_LIKELY(biased)) {
        before = atomic_load_explicit(live, memory_order_relaxed);
        atomic_store_explicit(live, before | wanted, memory_order_relaxed);
    } else {
        before = atomic_fetch_or_explicit(live, wanted, CULET_ORDER_CLAIM);
    }
    if (slab->available >> unit & 1)
        update(bin, slab, unit);
    check_free(bin, slab, unit, wanted & ~before);
    return wanted & ~before;
}

/* The invariants that hold while other threads free. [bin lock] */
static void check_masks(struct culet_slab *slab)
{
    for (unsigned u = 0; u <= culet_slab_class(slab)->last; u++) {
        /* `live` first: under the lock no block becomes claimed, but a claimed one may be handed out and freed. */
        uint64_t live = slab->unit[u].live, claimed = slab->unit[u].claimed;
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

/* ---- recent units [bin lock] ---- */

static void push_recent(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    bin->recent[bin->recents++] = (uintptr_t)slab | unit;
}

static struct culet_slab *slab_of(uintptr_t recent, unsigned *unit)
{
    *unit = (unsigned)(recent % CULET_UNITS);
    return (struct culet_slab *)(recent - *unit);
}

/* The latest recent unit that still has a free block and is not claimed; NULL if none. The slab may be destroyed and
 * its descriptor reused for another class; while it has this class it stays, because we hold the lock. */
static struct culet_slab *pop_recent(struct culet_bin *bin, unsigned klass, unsigned *unit)
{
    while (bin->recents) {
        struct culet_slab *slab = slab_of(bin->recent[--bin->recents], unit);
        if (atomic_load_explicit(&slab->span.klass, memory_order_relaxed) != klass || slab->claims >> *unit & 1)
            continue;
        uint64_t live = atomic_load_explicit(&slab->unit[*unit].live, memory_order_relaxed);
        if (live != culet_class_full(&culet_classes[klass], *unit))
            return slab;
    }
    return NULL;
}

/* Updates the masks of all recent units. */
static void flush_recent(struct culet_bin *bin)
{
    unsigned unit;

    while (bin->recents) {
        struct culet_slab *slab = slab_of(bin->recent[--bin->recents], &unit);
        if (&bins[atomic_load_explicit(&slab->span.klass, memory_order_relaxed)] == bin)
            update(bin, slab, unit);
    }
}

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
    check_free(bin, slab, unit, ~atomic_load_explicit(&slab->unit[unit].live, memory_order_relaxed));
    claim->word = &culet_no_claim;
    cache->slab[klass] = NULL;
    slab->claims &= (uint16_t) ~(1u << unit);
    if (rest) {
        atomic_store_explicit(&slab->unit[unit].claimed, 0, memory_order_relaxed);
        atomic_fetch_and_explicit(&slab->unit[unit].live, ~rest, CULET_ORDER_FREE);
        update(bin, slab, unit);
    }
    if (slab->listed)
        destroy_if_idle(bin, slab);
}

/* Claims a unit for the cache and takes one of its blocks. */
static void *claim_unit(struct culet_cache *cache, unsigned klass, struct culet_slab *slab, unsigned unit, uint64_t got)
{
    slab->claims |= (uint16_t)(1u << unit);
    cache->slab[klass] = slab;
    cache->claim[klass].word = &slab->unit[unit].claimed;
    cache->claim[klass].base = (uintptr_t)block_of(slab, unit, 0);
    atomic_store_explicit(&slab->unit[unit].claimed, got & (got - 1), memory_order_relaxed);
    return block_of(slab, unit, (unsigned)__builtin_ctzll(got));
}

/* One block from any unit, claimed or not; NULL if there is none. */
static void *take_one(struct culet_bin *bin, unsigned klass, bool biased)
{
    unsigned unit;
    struct culet_slab *slab = pop_recent(bin, klass, &unit);
    bool is_recent = slab;

    if (!is_recent) {
        slab = bin->first;
        if (!slab)
            return NULL;
        unit = (unsigned)__builtin_ctz(slab->available);
    }
    const struct culet_class *c = &culet_classes[klass];
    uint64_t free = culet_class_full(c, unit) & ~atomic_load_explicit(&slab->unit[unit].live, memory_order_relaxed);
    take_bits(bin, slab, unit, free & -free, biased);
    /* Checked again: a free of another block meanwhile did not find the unit full, so it recorded nothing. */
    if (is_recent && !(slab->available >> unit & 1) &&
        atomic_load_explicit(&slab->unit[unit].live, memory_order_relaxed) != culet_class_full(c, unit))
        push_recent(bin, slab, unit);
    DEBUG_CHECK(slab);
    return block_of(slab, unit, (unsigned)__builtin_ctzll(free));
}

/* Units whose words share a cache line. */
#define LINE_UNITS (64 / (unsigned)sizeof(struct culet_unit))

/* An unclaimed unit; preferably one that shares no cache line with a claimed unit, since two claims in one line would
 * move it between processors at every malloc. */
static unsigned choose_unit(const struct culet_slab *slab)
{
    unsigned free = slab->available & ~slab->claims, near = 0;

    for (unsigned line = 0; slab->claims >> line; line += LINE_UNITS) {
        unsigned units = ((1u << LINE_UNITS) - 1) << line;
        near |= slab->claims & units ? units : 0;
    }
    return (unsigned)__builtin_ctz(free & ~near ? free & ~near : free);
}

void *culet_bin_claim(struct culet_cache *cache, unsigned klass)
{
    struct culet_bin *bin = &bins[klass];
    void *block = NULL;
    unsigned unit;

    bool biased = enter(bin);
    struct culet_slab *slab = pop_recent(bin, klass, &unit);
    if (slab) {
        const struct culet_class *c = &culet_classes[klass];
        uint64_t got = take_bits(bin, slab, unit, culet_class_full(c, unit), biased);
        if (got & (got - 1) || !cache->slab[klass]) {
            release(bin, cache, klass);
            block = claim_unit(cache, klass, slab, unit, got);
        } else {
            /* A single block is not worth a claim. */
            block = block_of(slab, unit, (unsigned)__builtin_ctzll(got));
        }
        DEBUG_CHECK(slab);
        leave(bin, biased);
        return block;
    }
    release(bin, cache, klass);
    slab = find_slab(bin, klass, false);
    if (CULET_UNLIKELY(!slab)) {
        block = take_one(bin, klass, biased);
    } else {
        unit = choose_unit(slab);
        uint64_t got = take_bits(bin, slab, unit, culet_class_full(culet_slab_class(slab), unit), biased);
        block = claim_unit(cache, klass, slab, unit, got);
        DEBUG_CHECK(slab);
    }
    leave(bin, biased);
    return block;
}

void culet_bin_release(struct culet_cache *cache, unsigned klass)
{
    struct culet_bin *bin = &bins[klass];

    if (!cache->slab[klass])
        return;
    bool biased = enter(bin);
    release(bin, cache, klass);
    leave(bin, biased);
}

void *culet_bin_take(unsigned klass)
{
    struct culet_bin *bin = &bins[klass];

    bool biased = enter(bin);
    void *block = take_one(bin, klass, biased);
    if (!block && find_slab(bin, klass, true))
        block = take_one(bin, klass, biased);
    leave(bin, biased);
    return block;
}

void culet_bin_unit_changed(unsigned klass, struct culet_slab *slab, unsigned unit, bool biased)
{
    struct culet_bin *bin = &bins[klass];

    if (culet_abandoned())
        return;
    if (!biased)
        culet_lock(&bin->lock);
    /* Another thread may have freed the rest of the slab since, and destroyed it. */
    if (atomic_load_explicit(&slab->span.klass, memory_order_relaxed) == klass) {
        uint64_t live = atomic_load_explicit(&slab->unit[unit].live, CULET_ORDER_READ_LIVE);
        check_free(bin, slab, unit, ~live);
        if (live && bin->recents < CULET_RECENT && !((slab->available | slab->claims) >> unit & 1)) {
            push_recent(bin, slab, unit);
            DEBUG_CHECK(slab);
        } else {
            update(bin, slab, unit);
            DEBUG_CHECK(slab);
            if (slab->listed)
                destroy_if_idle(bin, slab);
        }
    }
    uintptr_t double_freed = bin->double_freed;
    bin->double_freed = 0;
    if (!biased)
        culet_unlock(&bin->lock);
    if (CULET_UNLIKELY(double_freed)) {
        culet_bias_leave(culet_cache);
        culet_misuse("free", double_freed);
    }
}

/* ---- the whole bin ---- */

/* Purges the first listed slab and moves it to the end, so that resident slabs are used first. */
static size_t purge_first(struct culet_bin *bin)
{
    struct culet_slab *slab = bin->first;
    size_t unit_bytes = (size_t)culet_slab_class(slab)->size << culet_slab_class(slab)->unit_shift;

    if (idle(slab)) {
        destroy(bin, slab);
        return 0;
    }
    size_t returned = culet_slab_purge(slab);
    move_to_end(bin, slab);
    add_clean(bin, returned / unit_bytes);
    return returned;
}

size_t culet_bin_purge(unsigned klass, size_t bytes)
{
    struct culet_bin *bin = &bins[klass];
    size_t returned = 0, left = SIZE_MAX;

    while (left && returned < bytes) {
        bool biased = enter(bin);
        size_t slice = returned + CULET_PURGE_SLICE_BYTES;
        if (left == SIZE_MAX) {
            flush_recent(bin);
            left = bin->listed;
        }
        for (unsigned i = 0; left && bin->first && i < CULET_PURGE_SLICE_SLABS && returned < slice; i++, left--)
            returned += purge_first(bin);
        if (!bin->first)
            left = 0;
        /* The rest shares its pages with live blocks: it cannot be purged later either. */
        if (!left)
            add_clean(bin, SIZE_MAX);
        leave(bin, biased);
    }
    culet_lock(&culet_pages_lock);
    culet_pages_count_purged(returned);
    culet_unlock(&culet_pages_lock);
    return returned;
}

void culet_bin_begin_interval(unsigned klass)
{
    set(&bins[klass].low_water, resident_empties(&bins[klass]));
}

size_t culet_bin_idle_bytes(unsigned klass, bool since)
{
    struct culet_bin *bin = &bins[klass];
    const struct culet_class *c = &culet_classes[klass];
    uint32_t units = since ? get(&bin->low_water) : resident_empties(bin);

    return units < CULET_IDLE_UNITS_MIN ? 0 : ((size_t)units * c->size) << c->unit_shift;
}

static size_t resident_bytes(unsigned klass)
{
    return ((size_t)resident_empties(&bins[klass]) * culet_classes[klass].size) << culet_classes[klass].unit_shift;
}

bool culet_bin_reclaim_due(void)
{
    size_t resident = 0;

    if (culet_wakeup_scavenger_runs() ||
        atomic_load_explicit(&reclaimed, memory_order_relaxed) >= CULET_SMALL_HEAP_RECLAIM_MAX)
        return false;
    /* A small heap has no separate slabs for calloc. */
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++)
        resident += resident_bytes(klass);
    return resident > CULET_SMALL_HEAP_KEEP_BYTES;
}

void culet_bin_reclaim(void)
{
    size_t returned = 0;

    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        if (resident_bytes(klass) >= CULET_PAGE)
            returned += culet_bin_purge(klass, SIZE_MAX);
    culet_lock(&culet_pages_lock);
    returned += culet_pages_reclaim(CULET_SMALL_HEAP_KEEP_PAGES);
    culet_unlock(&culet_pages_lock);
    atomic_fetch_add_explicit(&reclaimed, returned, memory_order_relaxed);
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
        update(&bins[slab->span.klass], slab, u);
}

void culet_bin_reconcile(void)
{
    culet_lock(&culet_pages_lock);
    culet_slab_each(reconcile, NULL);
    culet_unlock(&culet_pages_lock);
}

static bool is_listed_recent(const struct culet_bin *bin, const struct culet_slab *slab, unsigned unit)
{
    for (uint32_t i = 0; i < bin->recents; i++)
        if (bin->recent[i] == ((uintptr_t)slab | unit))
            return true;
    return false;
}

/* The invariants that hold while no thread frees. `data`: empty units, by class. */
static void check_slab(struct culet_slab *slab, void *data)
{
    ((uint32_t *)data)[slab->span.klass] += (uint32_t)__builtin_popcount(slab->empty);
    check_masks(slab);
    for (unsigned u = 0; u <= culet_slab_class(slab)->last; u++) {
        uint64_t live = slab->unit[u].live, full = culet_class_full(culet_slab_class(slab), u);
        bool available = slab->available >> u & 1;
        if ((available != (live != full) && (available || !is_listed_recent(&bins[slab->span.klass], slab, u))) ||
            (slab->empty >> u & 1) != (live == 0))
            __builtin_trap();
    }
}

void culet_bin_check(void)
{
    uint32_t empties[CULET_CLASSES] = {0};

    culet_bin_lock_all();
    culet_lock(&culet_pages_lock);
    culet_slab_each(check_slab, empties);
    culet_unlock(&culet_pages_lock);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        if (get(&bins[klass].empties) != empties[klass] || get(&bins[klass].clean) > empties[klass])
            __builtin_trap();
    culet_bin_unlock_all();
}
