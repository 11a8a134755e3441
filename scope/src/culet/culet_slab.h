/* culet_slab.h - the states of the blocks of one slab, from a copy of its descriptor. */
#ifndef CULET_CULET_SLAB_H
#define CULET_CULET_SLAB_H

#include "culet/culet_selfmap.h"

/* The states of up to 64 blocks of a unit, one bit each. Cached: kept by a thread for its next requests. */
struct culet_bits {
    uint64_t used, cached;
};

struct culet_bits culet_slab_bits(const struct culet_selfmap *self, const unsigned char *slab, unsigned unit);

/* Number of units of a slab, and of blocks in unit `unit`. */
unsigned culet_slab_units(const struct culet_shape *shape);
unsigned culet_slab_unit_blocks(const struct culet_shape *shape, unsigned unit);

/* Calls `each` for every maximal range of blocks in one state, in order. */
typedef void culet_slab_range(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state);
void culet_slab_each(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     culet_slab_range *each, void *context);

#endif
