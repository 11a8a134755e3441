/* regions.h - the regions of all heaps, by address. They do not overlap. */
#pragma once

#include "regions/region.h"

struct culet_regions {
    struct culet_region **all; /* by address, without overlaps */
    size_t count, room;
    unsigned shift;       /* log2 of the page size */
    uint64_t block_count; /* of all regions */
    uint64_t max_blocks;  /* with more no blocks are written */
};

/* Adds a region; start and end are multiples of 8. Nothing of it is used yet, or all of it with `full`. Page states
 * are 0 until set. Returns NULL if it would be empty or overlap another region. */
struct culet_region *culet_region_new(struct culet_regions *regions, const char *kind, uint32_t arena, uint64_t start,
                                      uint64_t end, bool full);

/* Moves the end. Returns false, changing nothing, if the region would be empty or overlap the next one. */
bool culet_region_resize(const struct culet_regions *regions, struct culet_region *region, uint64_t end);

/* The region that contains this address, or NULL. */
struct culet_region *culet_regions_at(const struct culet_regions *regions, uint64_t address);

/* The first region that ends after this address, or NULL. */
struct culet_region *culet_regions_next(const struct culet_regions *regions, uint64_t address);
