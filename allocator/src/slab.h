/* slab.h - one slab: from pointers to blocks, birth and death, and the return of its free pages. */
#ifndef CULET_SLAB_H
#define CULET_SLAB_H

#include "types.h"

/* Where a pointer lies in a slab. */
struct culet_spot {
    unsigned unit;
    uint64_t bit; /* of the block in the unit's words */
    bool exact;   /* it is the start of a block */
};

/* The spot of a pointer that lies in one of the slab's granules. */
static inline struct culet_spot culet_slab_spot(const struct culet_slab *slab, uintptr_t p)
{
    uint32_t offset = (uint32_t)(p - slab->owner.start);
    uint32_t index = (uint32_t)((uint64_t)offset * slab->reciprocal >> 32);
    struct culet_spot spot = {
        .unit = index >> slab->unit_shift,
        .bit = UINT64_C(1) << (index & ((1u << slab->unit_shift) - 1)),
        .exact = index * slab->size == offset && index < slab->count,
    };
    return spot;
}

static inline uint64_t culet_slab_full(const struct culet_slab *slab, unsigned unit)
{
    return unit == slab->last ? slab->last_full : slab->full;
}

/* Whether the block is in the program's hands. */
static inline bool culet_slab_is_live(struct culet_slab *slab, struct culet_spot spot)
{
    uint64_t live = atomic_load_explicit(&slab->live[spot.unit], memory_order_relaxed);
    uint64_t claimed = atomic_load_explicit(&slab->claimed[spot.unit], memory_order_relaxed);
    return (live & ~claimed & spot.bit) != 0;
}

/* A new slab of that class, all blocks free; NULL when out of memory. [bin lock] */
struct culet_slab *culet_slab_create(unsigned klass);

/* Gives the slab's granules back to the page heap. [bin lock; no block live, no unit claimed] */
void culet_slab_destroy(struct culet_slab *slab);

/* Returns to the kernel the pages that only free blocks touch. Returns bytes given back. [bin lock] */
size_t culet_slab_purge(struct culet_slab *slab);

/* The granules that a unit touches, as a mask. */
uint16_t culet_slab_granules(const struct culet_slab *slab, unsigned unit);

/* Blocks in the program's hands. */
unsigned culet_slab_live(struct culet_slab *slab);

/* Calls `visit` for every slab of every class. [pages lock] */
void culet_slab_each(void (*visit)(struct culet_slab *slab, void *data), void *data);

#endif
