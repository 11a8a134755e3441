/* culet_slab.h - the states of the blocks of one slab, from a copy of its descriptor. */
#pragma once

#include "culet/culet_selfmap.h"

/* Blocks in one state, used or free: as many as follow each other. Initialize to zero. */
struct culet_slab_range {
    uint32_t first, blocks;
    enum culet_block_state state;
};

/* The next range, in order; false if there is none. */
bool culet_slab_next(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     struct culet_slab_range *range);
