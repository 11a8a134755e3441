/* slab.h - one slab: from an offset to a block, creation and destruction, and the purge of its free pages. */
#ifndef CULET_SLAB_H
#define CULET_SLAB_H

#include "size_class.h"
#include "types.h"

/* Which block of a slab an offset lies in. */
struct culet_block_index {
    unsigned unit;
    unsigned number; /* of the block in its unit */
    uint64_t bit;    /* 1 << number */
    bool exact;      /* the offset is the start of a block, or of the rest behind the last, whose bit is never set */
};

/* The block index of an offset in a slab of that class. A slab has no pages beyond CULET_UNITS units, so the unit is
 * always one of the slab's. */
static inline struct culet_block_index culet_slab_index(const struct culet_class *c, uint32_t offset)
{
    uint32_t block = (uint32_t)((uint64_t)offset * c->reciprocal >> 32);
    struct culet_block_index index = {
        .unit = block >> c->unit_shift,
        .number = block & c->unit_mask,
        .bit = UINT64_C(1) << (block & c->unit_mask),
        .exact = block * c->size == offset,
    };
    return index;
}

/* Whether the program uses the block. */
static inline bool culet_slab_is_live(struct culet_slab *slab, struct culet_block_index index)
{
    struct culet_unit *unit = &slab->unit[index.unit];
    uint64_t live = atomic_load_explicit(&unit->live, memory_order_relaxed);
    uint64_t claimed = atomic_load_explicit(&unit->claimed, memory_order_relaxed);
    return (live & ~claimed) >> index.number & 1;
}

/* The shape of a slab. */
static inline const struct culet_class *culet_slab_class(const struct culet_slab *slab)
{
    return &culet_classes[atomic_load_explicit(&slab->span.klass, memory_order_relaxed)];
}

/* A new slab with all blocks free; NULL when out of memory. [bin lock] */
struct culet_slab *culet_slab_create(unsigned klass);

/* Gives the slab's pages back to the page heap. [bin lock; no block live, no unit claimed] */
void culet_slab_destroy(struct culet_slab *slab);

/* Returns to the kernel the pages that overlap free blocks only. Returns bytes. [bin lock] */
size_t culet_slab_purge(struct culet_slab *slab);

/* The pages that a unit overlaps, as a mask. */
static inline uint16_t culet_slab_unit_pages(const struct culet_class *c, unsigned unit)
{
    uint32_t unit_bytes = c->size << c->unit_shift, most = (uint32_t)c->count * c->size;
    uint32_t end = (unit + 1) * unit_bytes;
    uint32_t first = unit * unit_bytes >> CULET_PAGE_SHIFT;
    uint32_t last = ((end < most ? end : most) - 1) >> CULET_PAGE_SHIFT;

    return (uint16_t)((2u << last) - (1u << first));
}

/* Calls `visit` for every slab of every class. [pages lock] */
void culet_slab_each(void (*visit)(struct culet_slab *slab, void *data), void *data);

#endif
