/* culet_slab.h - the states of the blocks of one slab, from a copy of its descriptor. */
#pragma once

#include "culet/culet_selfmap.h"

/* Calls `each` for every maximal range of blocks in one state, used or free, in order. */
typedef void culet_slab_range(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state);
void culet_slab_each(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     culet_slab_range *each, void *context);
