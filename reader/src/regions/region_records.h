/* region_records.h - the records about a region: fill and blocks. */
#pragma once

#include "regions/regions.h"

/* The slow path of culet_region_add_block: the buffer is full, or the block is larger than 16 GiB. */
void culet_region_append_block(struct culet_region *region, uint64_t bytes, unsigned state);

/* Adds the next block: `bytes` is a multiple of 16; blocks follow each other from first_block (set by the caller). */
static inline void culet_region_add_block(struct culet_regions *regions, struct culet_region *region, uint64_t bytes,
                                          unsigned state)
{
    uint64_t units = bytes / CULET_BLOCK_UNIT;
    struct culet_buffer *blocks = &region->blocks;

    region->block_count++;
    if (regions->block_count++ >= regions->max_blocks)
        return;
    if (units >> 30 || blocks->room - blocks->length < sizeof(uint32_t)) {
        culet_region_append_block(region, bytes, state);
        return;
    }
    *(uint32_t *)(void *)(blocks->bytes + blocks->length) = (uint32_t)units << CULET_BLOCK_STATE_BITS | state;
    blocks->length += sizeof(uint32_t);
}

/* Adds `count` blocks of `bytes` each. */
void culet_region_add_blocks(struct culet_regions *regions, struct culet_region *region, uint64_t bytes, uint64_t count,
                             unsigned state);

/* Writes the fill, block and slab records of a region. */
void culet_region_write(const struct culet_regions *regions, const struct culet_region *region);
