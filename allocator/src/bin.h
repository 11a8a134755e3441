/* bin.h - the slabs of one size class in an arena: the next unit to allocate from, the units that frees make available,
 * and the frees of other threads. Without another remark the functions are for the thread that is inside the arena. */
#ifndef CULET_BIN_H
#define CULET_BIN_H

#include "types.h"

/* The lowest free block of the class's current unit; NULL if it has none. */
static inline void *culet_bin_take(struct culet_arena *arena, unsigned klass)
{
    const struct culet_current *current = &arena->current[klass];
    uint64_t free = atomic_load_explicit(&current->unit->free, memory_order_relaxed);

    if (CULET_UNLIKELY(!free))
        return NULL;
    atomic_store_explicit(&current->unit->free, free & (free - 1), memory_order_relaxed);
    return (void *)(current->base + (size_t)__builtin_ctzll(free) * current->size);
}

/* A block, from another unit if the current one has none; NULL when out of memory. */
void *culet_bin_get(struct culet_arena *arena, unsigned klass);

/* Records what a free changed: the unit's free word was 0 before, or no block of the unit is live now. */
void culet_bin_unit_changed(struct culet_arena *arena, struct culet_slab *slab, unsigned unit);

/* Frees a live block of a slab of any arena, from any thread, inside an arena or not. False: the block is not live. */
bool culet_bin_free_remote(struct culet_slab *slab, uint32_t block);

/* Makes the blocks available that other threads have freed. */
void culet_bin_collect(struct culet_arena *arena);

/* Lists the recent units of the class as available. */
void culet_bin_flush_recent(struct culet_arena *arena, unsigned klass);

/* No current unit any more; its free blocks are available. */
void culet_bin_drop_current(struct culet_arena *arena, unsigned klass);

/* Marks the pages of the current unit as dirty, if it is one of the slab's: its blocks are handed out without a look. */
void culet_bin_mark_current(struct culet_arena *arena, struct culet_slab *slab);

/* Lists the units with a free block that culet_slab_give_pages has given some. */
void culet_bin_list_available(struct culet_arena *arena, struct culet_slab *slab);

/* Destroys a slab without a live block. Not that of the current unit. */
void culet_bin_destroy(struct culet_arena *arena, struct culet_slab *slab);

/* In a forked child: collects all frees of other threads, also those that were not finished. [all arenas] */
void culet_bin_reconcile(void);

/* Aborts unless the invariants hold in every arena. Only while no other thread is inside one. */
void culet_bin_check(void);

#endif
