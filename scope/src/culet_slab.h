/* culet_slab.h - which blocks of one slab of culet's are used, out of a copy of its descriptor. */
#ifndef CULET_CULET_SLAB_H
#define CULET_CULET_SLAB_H

#include "../format.h"
#include "culet_self.h"

/* The unit's 64 blocks, bit by bit. Cached: a thread holds it for its next requests. */
struct culet_bits {
    uint64_t used, claimed;
};

/* Unit `unit` of the slab. */
struct culet_bits culet_slab_bits(const struct culet_selfmap *self, const unsigned char *slab, unsigned unit);

/* How many units it has, and how many blocks are in unit `unit`. */
unsigned culet_slab_units(const struct culet_shape *shape);
unsigned culet_slab_unit_blocks(const struct culet_shape *shape, unsigned unit);

/* Calls `each` for every longest range of blocks in the same state, in order: all of the slab's. */
typedef void culet_slab_range(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state);
void culet_slab_each(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     culet_slab_range *each, void *context);

#endif
