#include "bin.h"

#include "../../sampler/core/random.h"
#include "abandoned.h"
#include "arena.h"
#include "harden.h"
#include "lock.h"
#include "misuse.h"
#include "pagemap.h"
#include "pages.h"
#include "reclaim_policy.h"
#include "size_class.h"
#include "slab.h"
#include "wakeup.h"

/* Times that another arena may adopt the current slab of a class between two purges: without a bound, two threads that use
 * few blocks of a class would take its only slab from each other forever. */
#define CURRENT_ADOPTIONS 16
/* Slabs that an adoption chooses from. */
#define ADOPTION_CHOICE 16

static uint64_t free_of(const struct culet_slab *slab, unsigned unit)
{
    return atomic_load_explicit(&slab->unit[unit].free, memory_order_relaxed);
}

static unsigned class_of(const struct culet_slab *slab)
{
    return atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
}

/* ---- the list of slabs with available units ---- */

static struct culet_slab *first_of(const struct culet_bin *bin)
{
    return atomic_load_explicit(&bin->first, memory_order_relaxed);
}

/* Links the slab between two neighbours of the list, or behind or before its end. */
static void link(struct culet_bin *bin, struct culet_slab *prev, struct culet_slab *slab, struct culet_slab *next)
{
    slab->prev = prev;
    slab->next = next;
    if (prev)
        prev->next = slab;
    else
        atomic_store_explicit(&bin->first, slab, memory_order_relaxed);
    if (next)
        next->prev = slab;
    else
        bin->last = slab;
}

static void unlist(struct culet_bin *bin, struct culet_slab *slab)
{
    if (slab == bin->unvisited)
        bin->unvisited = slab->next;
    if (slab->prev)
        slab->prev->next = slab->next;
    else
        atomic_store_explicit(&bin->first, slab->next, memory_order_relaxed);
    if (slab->next)
        slab->next->prev = slab->prev;
    else
        bin->last = slab->prev;
}

void culet_bin_move_to_end(struct culet_arena *arena, struct culet_slab *slab)
{
    struct culet_bin *bin = &arena->bin[class_of(slab)];

    if (slab->available && slab->next) {
        unlist(bin, slab);
        link(bin, bin->last, slab, NULL);
    }
}

static void set_available(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    if (!slab->available)
        link(bin, NULL, slab, first_of(bin));
    slab->available |= (uint16_t)(1u << unit);
}

static void clear_available(struct culet_bin *bin, struct culet_slab *slab, unsigned unit)
{
    if (!slab->available)
        return;
    slab->available &= (uint16_t) ~(1u << unit);
    if (!slab->available)
        unlist(bin, slab);
}

/* An available unit of the first listed slab; NULL if there is none. */
static struct culet_slab *pop_available(struct culet_bin *bin, unsigned *unit)
{
    struct culet_slab *slab;

    while ((slab = first_of(bin))) {
        *unit = (unsigned)__builtin_ctz(slab->available);
        clear_available(bin, slab, *unit);
        if (CULET_LIKELY(free_of(slab, *unit)))
            return slab;
    }
    return NULL;
}

/* ---- recent units ---- */

/* The unit was full and has a free block now. */
static void add_free_unit(struct culet_arena *arena, struct culet_slab *slab, unsigned unit)
{
    if (CULET_UNLIKELY(culet_harden_level) || !culet_bin_add_recent(arena, class_of(slab), slab, unit))
        set_available(&arena->bin[class_of(slab)], slab, unit);
}

static void forget_recent(struct culet_bin *bin, const struct culet_slab *slab)
{
    uint16_t added = culet_bin_recents_added(bin), kept = culet_bin_recents_taken(bin);
    unsigned unit;

    for (uint16_t i = kept; i != added; i++)
        if (culet_bin_recent(*culet_bin_recent_at(bin, i), &unit) != slab)
            *culet_bin_recent_at(bin, kept++) = *culet_bin_recent_at(bin, i);
    atomic_store_explicit(&bin->recents_added, kept, memory_order_relaxed);
}

static bool is_recent(struct culet_bin *bin, const struct culet_slab *slab, unsigned unit)
{
    for (uint16_t i = culet_bin_recents_taken(bin); i != culet_bin_recents_added(bin); i++)
        if (*culet_bin_recent_at(bin, i) == ((uintptr_t)slab | unit))
            return true;
    return false;
}

void culet_bin_flush_recent(struct culet_arena *arena, unsigned klass)
{
    struct culet_bin *bin = &arena->bin[klass];
    uint16_t taken = culet_bin_recents_taken(bin), added = culet_bin_recents_added(bin);
    unsigned unit;

    for (uint16_t i = added; i != taken;) {
        struct culet_slab *slab = culet_bin_recent(*culet_bin_recent_at(bin, --i), &unit);
        if (free_of(slab, unit) && &slab->unit[unit] != arena->current[klass].unit)
            set_available(bin, slab, unit);
    }
    atomic_store_explicit(&bin->recents_taken, added, memory_order_relaxed);
}

static void note_change(struct culet_arena *arena)
{
    uint32_t changes = atomic_load_explicit(&arena->changes, memory_order_relaxed);

    atomic_store_explicit(&arena->changes, changes + 1, memory_order_relaxed);
}

/* An available unit is about to be used. */
static void begin_available(struct culet_arena *arena, unsigned klass, struct culet_slab *slab, unsigned unit)
{
    slab->dirty |= (uint32_t)culet_slab_unit_pages(slab, unit);
    note_change(arena);
    atomic_store_explicit(&arena->bin[klass].has_unit, true, memory_order_relaxed);
    atomic_store_explicit(&arena->active, true, memory_order_relaxed);
}

/* ---- claims of the profile ---- */

_Atomic uint32_t culet_bin_profile;

static struct culet_claim *claim_of(struct culet_arena *arena, unsigned klass)
{
    uint32_t profile = atomic_load_explicit(&culet_bin_profile, memory_order_relaxed);

    if (CULET_UNLIKELY(arena->profile != profile)) {
        for (unsigned k = 0; k < CULET_CLASSES; k++)
            arena->claim[k].until = 0;
        arena->profile = profile;
    }
    return &arena->claim[klass];
}

/* Draws the next sample: a request is one with the probability 1 - exp(-size / mean), whatever the others were. */
static void draw(struct culet_claim *claim, unsigned klass)
{
    claim->until = culet_profile_distance() / culet_classes[klass].size + 1;
}

bool culet_bin_due(struct culet_arena *arena, unsigned klass)
{
    struct culet_claim *claim;

    if (atomic_load_explicit(&arena->current[klass].unit->free, memory_order_relaxed))
        return false;
    claim = claim_of(arena, klass);
    if (!claim->until)
        draw(claim, klass);
    if (claim->until > 1)
        return false;
    draw(claim, klass);
    return true;
}

/* The lowest free blocks of a unit, at most `most`. */
static uint64_t lowest(uint64_t free, uint64_t most)
{
    uint64_t taken = 0;

    for (; free && most; most--, free &= free - 1)
        taken |= free & -free;
    return taken;
}

/* __builtin_popcountll is a call where the processor need not have the instruction. */
static inline unsigned count_bits(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* Makes these blocks of a unit the class's claim, and returns the first of them. They are counted already. */
static inline void *claim_blocks(struct culet_arena *arena, unsigned klass, struct culet_slab *slab, unsigned unit,
                                 uint64_t free, uint64_t taken)
{
    struct culet_claim *claim = &arena->claim[klass];

    claim->source = &slab->unit[unit];
    atomic_store_explicit(&claim->source->free, free & ~taken, memory_order_relaxed);
    culet_bin_set_current(arena, klass, slab, unit, &claim->unit);
    return (void *)(arena->current[klass].base +
                    culet_unit_take(&claim->unit, taken) * (uint32_t)arena->current[klass].size);
}

/* A block of an available unit, of which others are claimed, at most as many as there are requests before the next sample.
 * A sample that has become due since it was checked comes one request late. */
static void *claim_available(struct culet_arena *arena, unsigned klass, struct culet_slab *slab, unsigned unit)
{
    struct culet_claim *claim = claim_of(arena, klass);
    uint64_t free = free_of(slab, unit), taken = free;

    if (CULET_UNLIKELY(!claim->until))
        draw(claim, klass);
    if (CULET_UNLIKELY(claim->until <= count_bits(free)))
        taken = lowest(free, claim->until > 1 ? claim->until - 1 : 1);
    claim->until -= claim->until > 1 ? count_bits(taken) : 0;
    void *block = claim_blocks(arena, klass, slab, unit, free, taken);
    if (CULET_UNLIKELY(taken != free))
        set_available(&arena->bin[klass], slab, unit);
    return block;
}

/* A block of the newest recent unit, of which others are claimed, fewer than there are requests before the next sample;
 * NULL if the unit has no free block. One block stays free, and the unit recent: so the first free of a block does not
 * find that the unit was full. An only block is taken by itself. */
static inline void *claim_newest(struct culet_arena *arena, unsigned klass, struct culet_claim *claim, uint16_t added)
{
    struct culet_bin *bin = &arena->bin[klass];
    unsigned unit;

    struct culet_slab *slab = culet_bin_recent(*culet_bin_recent_at(bin, --added), &unit);
    uint64_t free = free_of(slab, unit), taken;
    if (!(free & (free - 1))) {
        atomic_store_explicit(&bin->recents_added, added, memory_order_relaxed);
        if (CULET_UNLIKELY(!free))
            return NULL;
        claim->until--;
        slab->span.purge_epoch = arena->purge_epoch;
        atomic_store_explicit(&slab->unit[unit].free, 0, memory_order_relaxed);
        unsigned block = unit * CULET_UNIT + (unsigned)__builtin_ctzll(free);
        return (void *)(slab->span.start + block * (uint32_t)arena->current[klass].size);
    }
    taken = free & ~(UINT64_C(1) << (63 - __builtin_clzll(free)));
    unsigned count = count_bits(taken);
    if (CULET_UNLIKELY(claim->until <= count)) {
        taken = lowest(taken, claim->until - 1);
        count = (unsigned)claim->until - 1;
    }
    claim->until -= count;
    return claim_blocks(arena, klass, slab, unit, free, taken);
}

/* A block of an available unit of the first listed slab, of which others are claimed. NULL if no slab is listed, or if
 * other threads have freed blocks, which were used more recently. */
static __attribute__((noinline)) void *claim_listed(struct culet_arena *arena, unsigned klass)
{
    struct culet_slab *slab;
    unsigned unit;

    if (atomic_load_explicit(&arena->remote, memory_order_relaxed) ||
        !(slab = pop_available(&arena->bin[klass], &unit)))
        return NULL;
    begin_available(arena, klass, slab, unit);
    return claim_available(arena, klass, slab, unit);
}

/* Gives the blocks of a claim back that were not handed out. */
static void unclaim(struct culet_arena *arena, unsigned klass, struct culet_slab *slab)
{
    struct culet_claim *claim = &arena->claim[klass];
    struct culet_bin *bin = &arena->bin[klass];
    uint64_t left = atomic_load_explicit(&claim->unit.free, memory_order_relaxed);
    uint64_t unused = culet_unit_unused(claim->source);
    unsigned unit = (unsigned)(claim->source - slab->unit);

    if (!left)
        return;
    if (CULET_UNLIKELY(unused & left)) {
        culet_arena_leave(arena);
        culet_misuse("free", culet_slab_address(slab, unit * CULET_UNIT + (unsigned)__builtin_ctzll(unused & left)));
    }
    if (claim->until)
        claim->until += count_bits(left);
    atomic_store_explicit(&claim->unit.free, 0, memory_order_relaxed);
    atomic_store_explicit(&claim->source->free, free_of(slab, unit) | left, memory_order_relaxed);
    if (!is_recent(bin, slab, unit))
        set_available(bin, slab, unit);
}

void *culet_bin_claim(struct culet_arena *arena, unsigned klass)
{
    struct culet_bin *bin = &arena->bin[klass];
    uint16_t taken = culet_bin_recents_taken(bin), added = culet_bin_recents_added(bin);

    /* As is always so in the placeholder of a thread that holds no arena. */
    if (CULET_UNLIKELY(added == taken && !first_of(bin)))
        return NULL;
    struct culet_claim *claim = claim_of(arena, klass);
    if (CULET_UNLIKELY(claim->until <= 1))
        return NULL;
    for (; CULET_LIKELY(added != taken); added--) {
        void *block = claim_newest(arena, klass, claim, added);
        if (CULET_LIKELY(block != NULL))
            return block;
    }
    return claim_listed(arena, klass);
}

/* ---- requests ---- */

void culet_bin_drop_current(struct culet_arena *arena, unsigned klass)
{
    struct culet_current *current = &arena->current[klass];
    const struct culet_unit *unit = current->unit;
    struct culet_slab *slab = current->slab;

    current->unit = &culet_no_unit;
    current->slab = NULL;
    if (unit == &arena->claim[klass].unit)
        unclaim(arena, klass, slab);
    else if (slab && atomic_load_explicit(&unit->free, memory_order_relaxed))
        set_available(&arena->bin[klass], slab, (unsigned)(unit - slab->unit));
}

static struct culet_slab *create(struct culet_arena *arena, unsigned klass, unsigned *unit)
{
    struct culet_slab *slab = culet_slab_create(arena->number, klass);

    if (!slab)
        return NULL;
    if (CULET_UNLIKELY(slab->span.segment >= CULET_DEFERRING_SEGMENT)) {
        arena->deferred_tag = CULET_ENTRY_TAG(arena->number);
        arena->tag = CULET_ENTRY_NO_TAG;
    }
    for (unsigned u = 1; u < culet_class_units(&culet_classes[klass]); u++)
        set_available(&arena->bin[klass], slab, u);
    *unit = 0;
    return slab;
}

/* ---- blocks of other arenas ---- */

/* Whether the class's current unit may be given to another arena too. */
static bool may_lose_current(const struct culet_bin *bin)
{
    return atomic_load_explicit(&bin->adoptions, memory_order_relaxed) < CURRENT_ADOPTIONS;
}

static unsigned free_blocks(const struct culet_slab *slab)
{
    unsigned blocks = 0;

    for (unsigned left = slab->available; left; left &= left - 1)
        blocks += (unsigned)__builtin_popcountll(free_of(slab, (unsigned)__builtin_ctz(left)));
    return blocks;
}

/* Of the first listed slabs that may be moved the one with most free blocks, so that few live ones of the other arena's
 * threads move along, whose frees would be remote; NULL if there is none. */
static struct culet_slab *movable(struct culet_arena *from, unsigned klass)
{
    struct culet_slab *best = NULL, *slab = first_of(&from->bin[klass]);
    unsigned most = 0;

    for (unsigned choice = ADOPTION_CHOICE; slab && choice; slab = slab->next) {
        if (slab->purging || slab == from->current[klass].slab)
            continue;
        choice--;
        unsigned blocks = free_blocks(slab);
        if (blocks <= most)
            continue;
        most = blocks;
        best = slab;
    }
    return best;
}

/* Moves one slab with free blocks from another arena to this one. A thread that frees a block of it meanwhile may still
 * push it on the other arena's stack; culet_bin_collect passes it on. */
static bool move_slab(struct culet_arena *from, struct culet_arena *to, unsigned klass)
{
    struct culet_bin *bin = &from->bin[klass];

    if (atomic_load_explicit(&from->remote, memory_order_relaxed))
        culet_bin_collect(from);
    culet_bin_flush_recent(from, klass);
    struct culet_slab *slab = movable(from, klass);
    if (!slab && may_lose_current(bin)) {
        culet_bin_drop_current(from, klass);
        slab = movable(from, klass);
        uint8_t adoptions = atomic_load_explicit(&bin->adoptions, memory_order_relaxed);
        atomic_store_explicit(&bin->adoptions, (uint8_t)(adoptions + (slab != NULL)), memory_order_relaxed);
        atomic_store_explicit(&bin->has_unit, false, memory_order_relaxed);
    }
    if (!slab)
        return false;
    unlist(bin, slab);
    slab->available = 0;
    atomic_store_explicit(&slab->span.arena, to->number, memory_order_relaxed);
    culet_pagemap_set_slab(slab, culet_classes[klass].pages);
    culet_bin_list_available(to, slab);
    return true;
}

/* Whether another arena seems to have a free block of the class: a hint, read without its lock. */
static bool may_have(const struct culet_arena *arena, unsigned klass)
{
    const struct culet_bin *bin = &arena->bin[klass];

    return atomic_load_explicit(&bin->first, memory_order_relaxed) ||
           atomic_load_explicit(&arena->remote, memory_order_relaxed) || culet_bin_recents(bin) ||
           (may_lose_current(bin) && atomic_load_explicit(&bin->has_unit, memory_order_relaxed));
}

/* Whether the other arena has changed since this one last looked there. Its holder runs in parallel then: it will use
 * its free blocks itself, and what it still frees in an adopted slab would be remote. */
static bool in_use(struct culet_arena *arena, const struct culet_arena *other)
{
    uint32_t changes = atomic_load_explicit(&other->changes, memory_order_relaxed);
    bool changed = changes != arena->seen[other->number];

    arena->seen[other->number] = changes;
    return changed;
}

/* Another arena's slab instead of a new one: memory that threads have left behind is used before the heap grows. */
static bool adopt(struct culet_arena *arena, unsigned klass)
{
    unsigned all = culet_arena_count();
    bool done = false;

    for (unsigned i = 1; i < all && !done; i++) {
        struct culet_arena *other = culet_arena((arena->number + i) % all);
        if (!may_have(other, klass) || in_use(arena, other) || !culet_arena_try_lock(other))
            continue;
        done = move_slab(other, arena, klass);
        culet_arena_unlock(other);
    }
    return done;
}

static void *take_recent(struct culet_arena *arena, unsigned klass)
{
    return culet_bin_profiled() ? culet_bin_claim(arena, klass) : culet_bin_take_recent(arena, klass);
}

/* Makes those of the slab's available units recent whose pages are resident. Requests take turns in them then, without
 * touching another page, so that each gets more free blocks before it is used. */
static void use_resident(struct culet_arena *arena, unsigned klass, struct culet_slab *slab)
{
    for (unsigned left = slab->available, unit; left; left &= left - 1) {
        unit = (unsigned)__builtin_ctz(left);
        if (culet_slab_unit_pages(slab, unit) & ~(uint64_t)slab->dirty)
            continue;
        if (!culet_bin_add_recent(arena, klass, slab, unit))
            return;
        clear_available(&arena->bin[klass], slab, unit);
    }
}

void *culet_bin_get(struct culet_arena *arena, unsigned klass)
{
    struct culet_bin *bin = &arena->bin[klass];
    void *block = culet_bin_take(arena, klass);
    unsigned unit;

    if (!block)
        block = take_recent(arena, klass);
    if (!block && (arena->deferrals || atomic_load_explicit(&arena->remote, memory_order_relaxed))) {
        culet_bin_collect(arena);
        /* The current unit may have got some. */
        block = culet_bin_take(arena, klass);
        if (!block)
            block = take_recent(arena, klass);
    }
    if (block)
        return block;
    struct culet_slab *slab = pop_available(bin, &unit);
    if (!slab && adopt(arena, klass))
        slab = pop_available(bin, &unit);
    if (!slab && !(slab = create(arena, klass, &unit)))
        return NULL;
    begin_available(arena, klass, slab, unit);
    if (culet_bin_profiled())
        return claim_available(arena, klass, slab, unit);
    use_resident(arena, klass, slab);
    culet_bin_set_current(arena, klass, slab, unit, &slab->unit[unit]);
    return culet_bin_take(arena, klass);
}

/* The n-th set bit of a word that has more. */
static unsigned nth_bit(uint64_t word, unsigned n)
{
    while (n--)
        word &= word - 1;
    return (unsigned)__builtin_ctzll(word);
}

static unsigned random_bit(uint64_t word)
{
    return nth_bit(word, culet_harden_random_below((uint32_t)__builtin_popcountll(word)));
}

/* The first listed slab: another arena's, or a new one, where none is. */
static struct culet_slab *listed_slab(struct culet_arena *arena, unsigned klass)
{
    struct culet_bin *bin = &arena->bin[klass];
    unsigned unit;

    if (atomic_load_explicit(&arena->remote, memory_order_relaxed))
        culet_bin_collect(arena);
    if (first_of(bin) || adopt(arena, klass))
        return first_of(bin);
    struct culet_slab *slab = create(arena, klass, &unit);
    if (slab)
        set_available(bin, slab, unit);
    return slab;
}

void *culet_bin_get_random(struct culet_arena *arena, unsigned klass)
{
    struct culet_slab *slab;
    unsigned unit;
    uint64_t free;

    do {
        slab = listed_slab(arena, klass);
        if (!slab)
            return NULL;
        unit = random_bit(slab->available);
        free = free_of(slab, unit);
        if (!free)
            clear_available(&arena->bin[klass], slab, unit);
    } while (!free);
    unsigned block = random_bit(free);
    free &= ~(UINT64_C(1) << block);
    atomic_store_explicit(&slab->unit[unit].free, free, memory_order_relaxed);
    slab->dirty |= (uint32_t)culet_slab_unit_pages(slab, unit);
    slab->span.purge_epoch = arena->purge_epoch;
    if (!free)
        clear_available(&arena->bin[klass], slab, unit);
    atomic_store_explicit(&arena->active, true, memory_order_relaxed);
    return (void *)culet_slab_address(slab, unit * CULET_UNIT + block);
}

/* ---- frees ---- */

void culet_bin_destroy(struct culet_arena *arena, struct culet_slab *slab)
{
    struct culet_bin *bin = &arena->bin[class_of(slab)];

    forget_recent(bin, slab);
    if (slab->available)
        unlist(bin, slab);
    culet_slab_destroy(slab);
}

/* A class keeps its last slab with free blocks if a scavenger runs, which will check whether it was needed. In a small heap
 * the slab is destroyed, unless that was in vain often enough: 64 tiny classes would keep up to 64 KiB each. */
static bool keeps_last(const struct culet_bin *bin)
{
    return culet_wakeup_scavenger_runs() || bin->releases >= CULET_SMALL_HEAP_SLAB_RELEASES;
}

static void destroy_if_free(struct culet_arena *arena, unsigned klass, struct culet_slab *slab)
{
    struct culet_bin *bin = &arena->bin[klass];
    bool current = slab == arena->current[klass].slab;
    bool last = current || !first_of(bin) || (first_of(bin) == slab && !slab->next);

    /* A purge that has taken pages on which no block lies refers to the slab until it gives them back. */
    if (slab->purging || (last && keeps_last(bin)) || !culet_slab_is_free(slab))
        return;
    bin->releases = (uint8_t)(bin->releases + last);
    if (current)
        culet_bin_drop_current(arena, klass);
    culet_bin_destroy(arena, slab);
}

void culet_bin_unit_changed(struct culet_arena *arena, unsigned klass, struct culet_slab *slab, unsigned unit)
{
    uint64_t free = free_of(slab, unit);

    note_change(arena);
    slab->span.purge_epoch = arena->purge_epoch;
    if (!(free & (free - 1)) && free)
        add_free_unit(arena, slab, unit);
    if (CULET_UNLIKELY(free == culet_class_all(&culet_classes[klass], unit)) && !culet_abandoned()) {
        atomic_store_explicit(&arena->active, true, memory_order_relaxed);
        culet_wakeup_notify();
        destroy_if_free(arena, klass, slab);
    }
}

/* Of a block that the arena's holder has freed. The slab may have moved to another arena since. */
static inline bool free_deferred(struct culet_arena *arena, uintptr_t block)
{
    uintptr_t entry = culet_pagemap_entry(block);
    struct culet_slab *slab = culet_entry_slab(entry);
    size_t index = culet_entry_index(entry, block).block;
    uint64_t before, unused;

    if (CULET_UNLIKELY((uint8_t)entry != arena->deferred_tag))
        return culet_entry_is_slab(entry) && culet_bin_free_remote(slab, index);
    if (CULET_UNLIKELY(!culet_unit_put(culet_slab_unit(slab, index), index, &before, &unused)))
        return false;
    if ((!before || !~unused) &&
        !culet_bin_note_free(arena, culet_entry_class(entry), slab, culet_block_unit(index), before, unused))
        culet_bin_unit_changed(arena, culet_entry_class(entry), slab, culet_block_unit(index));
    return true;
}

void culet_bin_finish_frees(struct culet_arena *arena)
{
    uint32_t count = arena->deferrals;

    arena->deferrals = 0;
    for (uint32_t i = 0; i < count; i++)
        if (CULET_UNLIKELY(!free_deferred(arena, (uintptr_t)arena->deferred[i]))) {
            culet_arena_leave(arena);
            culet_misuse("free", (uintptr_t)arena->deferred[i]);
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

bool culet_bin_free_remote(struct culet_slab *slab, size_t block)
{
    unsigned number = culet_block_unit(block);
    uint64_t bit = culet_block_bit(block);
    /* The class while the block is live: once it is freed, the slab may be destroyed. */
    const struct culet_class *c = culet_slab_class(slab);

    if (CULET_UNLIKELY(block >= c->count))
        return false;
    struct culet_unit *unit = culet_slab_unit(slab, block);
    if (CULET_UNLIKELY(atomic_load_explicit(&unit->free, memory_order_relaxed) & bit))
        return false;
    uint64_t before = atomic_fetch_or_explicit(&unit->remote, bit, CULET_ORDER_FREE_REMOTE);
    if (CULET_UNLIKELY(before & bit))
        return false;
    /* The holder may have collected the block by now, unless this is the unit's first, which is not marked yet. */
    if (before & culet_class_all(c, number) || culet_abandoned())
        return true;
    if (CULET_UNLIKELY(atomic_load_explicit(&unit->free, memory_order_relaxed) & bit))
        return false;
    uint16_t mark = (uint16_t)(1u << number);
    struct culet_arena *arena = culet_arena(atomic_load_explicit(&slab->span.arena, memory_order_relaxed));
    if (!atomic_fetch_or_explicit(&slab->remote_units, mark, CULET_ORDER_MARK_REMOTE)) {
        push_remote(arena, slab);
        culet_wakeup_notify();
    }
    return true;
}

static void collect_unit(struct culet_arena *arena, struct culet_slab *slab, unsigned unit)
{
    uint64_t all = culet_class_all(culet_slab_class(slab), unit);
    uint64_t remote = atomic_exchange_explicit(&slab->unit[unit].remote, ~all, CULET_ORDER_COLLECT) & all;
    uint64_t free = free_of(slab, unit);

    if (CULET_UNLIKELY(free & remote)) {
        culet_arena_leave(arena);
        culet_misuse("free", culet_slab_address(slab, unit * CULET_UNIT + (unsigned)__builtin_ctzll(free & remote)));
    }
    atomic_store_explicit(&slab->unit[unit].free, free | remote, memory_order_relaxed);
    if (!free)
        add_free_unit(arena, slab, unit);
}

void culet_bin_collect(struct culet_arena *arena)
{
    struct culet_slab *next;

    culet_bin_finish_frees(arena);
    for (struct culet_slab *slab = atomic_exchange_explicit(&arena->remote, NULL, CULET_ORDER_COLLECT); slab;
         slab = next) {
        /* The slab may be pushed again as soon as its marks are taken. */
        next = slab->next_remote;
        struct culet_arena *owner = culet_arena(atomic_load_explicit(&slab->span.arena, memory_order_relaxed));
        if (CULET_UNLIKELY(owner != arena)) {
            push_remote(owner, slab);
            continue;
        }
        unsigned marks = atomic_exchange_explicit(&slab->remote_units, 0, CULET_ORDER_COLLECT_MARKS);
        slab->span.purge_epoch = arena->purge_epoch;
        for (; marks; marks &= marks - 1)
            collect_unit(arena, slab, (unsigned)__builtin_ctz(marks));
        destroy_if_free(arena, class_of(slab), slab);
    }
}

void culet_bin_list_available(struct culet_arena *arena, struct culet_slab *slab)
{
    unsigned klass = class_of(slab);

    for (unsigned u = 0; u < culet_class_units(&culet_classes[klass]); u++)
        if (free_of(slab, u) && &slab->unit[u] != arena->current[klass].unit && !is_recent(&arena->bin[klass], slab, u))
            set_available(&arena->bin[klass], slab, u);
}

/* ---- the whole heap ---- */

static void reconcile(struct culet_slab *slab, void *data)
{
    struct culet_arena *arena = culet_arena(atomic_load_explicit(&slab->span.arena, memory_order_relaxed));

    (void)data;
    if (atomic_load_explicit(&slab->remote_units, memory_order_relaxed))
        atomic_store_explicit(&slab->remote_units, 0, memory_order_relaxed);
    for (unsigned u = 0; u < culet_class_units(culet_slab_class(slab)); u++)
        if (atomic_load_explicit(&slab->unit[u].remote, memory_order_relaxed) &
            culet_class_all(culet_slab_class(slab), u))
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
    struct culet_arena *arena = culet_arena(atomic_load_explicit(&slab->span.arena, memory_order_relaxed));
    struct culet_bin *bin = &arena->bin[class_of(slab)];

    (void)data;
    if (slab->available >> culet_class_units(c) || !slab->reciprocal)
        __builtin_trap();
    for (size_t g = 0; g < c->pages; g++)
        if (culet_pagemap_entry(slab->span.start + g * CULET_PAGE) != culet_entry_of(slab))
            __builtin_trap();
    if (slab->available && (slab->prev ? slab->prev->next : first_of(bin)) != slab)
        __builtin_trap();
    for (unsigned u = 0; u < CULET_UNITS; u++) {
        uint64_t all = culet_class_all(c, u), free = free_of(slab, u), remote = slab->unit[u].remote;
        bool current = &slab->unit[u] == arena->current[class_of(slab)].unit;
        bool available = slab->available >> u & 1;
        if (free & remote || (remote | all) != ~UINT64_C(0) || (remote & all && !(slab->remote_units >> u & 1)))
            __builtin_trap();
        if ((free && !current && !available && !is_recent(bin, slab, u)) || (current && available))
            __builtin_trap();
    }
}

static void check_claims(struct culet_arena *arena)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        const struct culet_claim *claim = &arena->claim[klass];
        const struct culet_current *current = &arena->current[klass];
        uint64_t claimed = atomic_load_explicit(&claim->unit.free, memory_order_relaxed);
        if (current->unit != &claim->unit) {
            if (claimed)
                __builtin_trap();
            continue;
        }
        ptrdiff_t unit = claim->source - current->slab->unit;
        if (unit < 0 || unit >= culet_class_units(&culet_classes[klass]) || class_of(current->slab) != klass ||
            current->base != culet_slab_address(current->slab, (size_t)unit * CULET_UNIT))
            __builtin_trap();
        if (claimed & ~culet_class_all(&culet_classes[klass], (unsigned)unit) ||
            claimed & culet_unit_unused(claim->source))
            __builtin_trap();
    }
}

void culet_bin_check(void)
{
    for (unsigned i = 0; i < culet_arena_count(); i++)
        check_claims(culet_arena(i));
    culet_lock(&culet_pages_lock);
    culet_slab_each(check_slab, NULL);
    culet_unlock(&culet_pages_lock);
}
