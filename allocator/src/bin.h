/* bin.h - the slabs of one size class in an arena: the next unit to allocate from, the units that frees make available,
 * and the frees of other threads. Without another remark the functions are for the thread that is inside the arena. */
#pragma once

#include "reclaim_policy.h"
#include "types.h"
#include "wakeup.h"

/* Takes a block from the free ones of a unit, of which there is at least one. Returns its number in the unit. */
static inline unsigned culet_unit_take(struct culet_unit *unit, uint64_t free)
{
    atomic_store_explicit(&unit->free, free & (free - 1), memory_order_relaxed);
    return (unsigned)__builtin_ctzll(free);
}

/* The lowest of the current unit's free blocks, of which there is at least one. */
static inline void *culet_current_take(const struct culet_current *current, uint64_t free)
{
    return (void *)(current->base + culet_unit_take(current->unit, free) * (uint32_t)current->size);
}

/* The lowest free block of the class's current unit; NULL if it has none. */
static inline void *culet_bin_take(struct culet_arena *arena, unsigned klass)
{
    const struct culet_current *current = &arena->current[klass];
    uint64_t free = atomic_load_explicit(&current->unit->free, memory_order_relaxed);

    return CULET_LIKELY(free) ? culet_current_take(current, free) : NULL;
}

/* Makes a unit with a free block the current one: itself, or blocks that are claimed from it. */
static inline void culet_bin_set_current(struct culet_arena *arena, unsigned klass, struct culet_slab *slab,
                                         unsigned unit, struct culet_unit *source)
{
    struct culet_current *current = &arena->current[klass];

    current->unit = source;
    current->base = slab->span.start + unit * CULET_UNIT * current->size;
    current->slab = slab;
    slab->span.purge_epoch = arena->purge_epoch;
}

/* The slab and the number of a recent unit. */
static inline struct culet_slab *culet_bin_recent(uintptr_t recent, unsigned *unit)
{
    *unit = (unsigned)(recent % CULET_UNITS);
    return (struct culet_slab *)(recent - *unit);
}

static inline uint16_t culet_bin_recents_added(const struct culet_bin *bin)
{
    return atomic_load_explicit(&bin->recents_added, memory_order_relaxed);
}

static inline uint16_t culet_bin_recents_taken(const struct culet_bin *bin)
{
    return atomic_load_explicit(&bin->recents_taken, memory_order_relaxed);
}

/* How many recent units there are. */
static inline unsigned culet_bin_recents(const struct culet_bin *bin)
{
    return (uint16_t)(culet_bin_recents_added(bin) - culet_bin_recents_taken(bin));
}

/* The entry of a recent unit. number: how many units had been added before */
static inline uintptr_t *culet_bin_recent_at(struct culet_bin *bin, unsigned number)
{
    return &bin->recent[number % CULET_RECENT];
}

/* A block of a unit that a free made available lately, which becomes current; NULL if there is none. The current unit
 * has no free block. The unit's pages are in `dirty`: it was full, or its pages were resident, and it has not been
 * purged. */
static inline void *culet_bin_take_recent(struct culet_arena *arena, unsigned klass)
{
    struct culet_bin *bin = &arena->bin[klass];
    uint16_t taken = culet_bin_recents_taken(bin), added = culet_bin_recents_added(bin);
    unsigned unit;

    while (CULET_LIKELY(taken != added)) {
        struct culet_slab *slab = culet_bin_recent(*culet_bin_recent_at(bin, taken++), &unit);
        atomic_store_explicit(&bin->recents_taken, taken, memory_order_relaxed);
        uint64_t free = atomic_load_explicit(&slab->unit[unit].free, memory_order_relaxed);
        if (CULET_UNLIKELY(!free))
            continue;
        culet_bin_set_current(arena, klass, slab, unit, &slab->unit[unit]);
        return culet_current_take(&arena->current[klass], free);
    }
    return NULL;
}

/* Adds a unit that was full to the recent ones, unless it is current. False: there are too many. */
static inline bool culet_bin_add_recent(struct culet_arena *arena, unsigned klass, struct culet_slab *slab,
                                        unsigned unit)
{
    struct culet_bin *bin = &arena->bin[klass];
    uint16_t added = culet_bin_recents_added(bin);

    if (CULET_UNLIKELY(&slab->unit[unit] == arena->current[klass].unit))
        return true;
    if (CULET_UNLIKELY(culet_bin_recents(bin) == CULET_RECENT))
        return false;
    slab->span.purge_epoch = arena->purge_epoch;
    *culet_bin_recent_at(bin, added) = (uintptr_t)slab | unit;
    atomic_store_explicit(&bin->recents_added, (uint16_t)(added + 1), memory_order_relaxed);
    return true;
}

/* Whether the slab has the class's current unit, and stays even without a live block: until the scavenger finds it unused,
 * or, in a small heap, because it was destroyed in vain often enough. */
static inline bool culet_bin_keeps_current(const struct culet_arena *arena, unsigned klass,
                                           const struct culet_slab *slab)
{
    return slab == arena->current[klass].slab &&
           (culet_wakeup_scavenger_runs() || arena->bin[klass].releases >= CULET_SMALL_HEAP_SLAB_RELEASES);
}

/* A block, from another unit if the current one has none; NULL when out of memory. */
void *culet_bin_get(struct culet_arena *arena, unsigned klass);

/* ---- while the profile runs (sampling.h) ----
 *
 * Of each class every request is counted, also by a program that allocates and frees one block over and over. The fast
 * path counts nothing: at most as many blocks as there are requests before the next sample are claimed from a unit
 * (struct culet_claim), and the claim is the current unit. Frees do not refill it. */

/* The number of the running profile; 0: none. */
extern _Atomic uint32_t culet_bin_profile;

static inline bool culet_bin_profiled(void)
{
    return CULET_UNLIKELY(atomic_load_explicit(&culet_bin_profile, memory_order_relaxed) != 0);
}

/* Whether the next request of the class, whose current unit has no free block, is a sample. The following one is drawn
 * then. */
bool culet_bin_due(struct culet_arena *arena, unsigned klass);

/* A block of a unit that is recent or available, from which others are claimed; NULL if there is none, or if the next
 * request may be a sample. The current unit has no free block. */
void *culet_bin_claim(struct culet_arena *arena, unsigned klass);

/* Whether the class's current unit is a claim that has blocks left. */
static inline bool culet_bin_has_claim(const struct culet_arena *arena, unsigned klass)
{
    const struct culet_unit *unit = arena->current[klass].unit;

    return unit == &arena->claim[klass].unit && atomic_load_explicit(&unit->free, memory_order_relaxed);
}

/* A block for a hardened process: a random one of a random unit of the class's first slab; NULL when out of memory. No
 * unit becomes current or recent, so the fast paths find none. */
void *culet_bin_get_random(struct culet_arena *arena, unsigned klass);

/* Records what a free changed: the unit's free word was 0 before, or no block of the unit is live now. */
void culet_bin_unit_changed(struct culet_arena *arena, unsigned klass, struct culet_slab *slab, unsigned unit);

/* Makes a unit recent that a free found full. False: that does not suffice, culet_bin_unit_changed must be called.
 * `before`, `unused`: as of culet_unit_put. */
static inline __attribute__((always_inline)) bool culet_bin_note_free(struct culet_arena *arena, unsigned klass,
                                                                      struct culet_slab *slab, unsigned unit,
                                                                      uint64_t before, uint64_t unused)
{
    return CULET_LIKELY(~unused || culet_bin_keeps_current(arena, klass, slab)) &&
           CULET_LIKELY(before || culet_bin_add_recent(arena, klass, slab, unit));
}

/* Does the deferred frees. Aborts if a block is not live. */
void culet_bin_finish_frees(struct culet_arena *arena);

/* Frees a block of the arena later, with others, whose bits are on their way into the processor's cache meanwhile. */
static inline void culet_bin_defer_free(struct culet_arena *arena, const struct culet_unit *unit, void *block)
{
    __builtin_prefetch(unit, 1);
    arena->deferred[arena->deferrals++] = block;
    if (CULET_UNLIKELY(arena->deferrals == CULET_DEFERRED))
        culet_bin_finish_frees(arena);
}

/* Frees a live block of a slab of any arena, from any thread, inside an arena or not. False: the block is not live. */
bool culet_bin_free_remote(struct culet_slab *slab, size_t block);

/* Makes the blocks available that other threads have freed, and those of deferred frees. */
void culet_bin_collect(struct culet_arena *arena);

/* Lists the recent units of the class as available. */
void culet_bin_flush_recent(struct culet_arena *arena, unsigned klass);

/* No current unit any more; its free blocks, or those of its claim, are available. */
void culet_bin_drop_current(struct culet_arena *arena, unsigned klass);

/* Lists the units with a free block that culet_slab_give_pages has given some. */
void culet_bin_list_available(struct culet_arena *arena, struct culet_slab *slab);

/* Puts a listed slab at the end of its list, so that others are used first. */
void culet_bin_move_to_end(struct culet_arena *arena, struct culet_slab *slab);

/* Destroys a slab without a live block. Not that of the current unit. */
void culet_bin_destroy(struct culet_arena *arena, struct culet_slab *slab);

/* In a forked child: collects all frees of other threads, also those that were not finished. [all arenas] */
void culet_bin_reconcile(void);

/* Aborts unless the invariants hold in every arena. Only while no other thread is inside one. */
void culet_bin_check(void);
