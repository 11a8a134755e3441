/* region.h - a region of a heap: used bytes per kernel page, the pages' states when the region was walked, and its blocks.
 *
 *   region.c          regions and their sums
 *   region_pages.c    the table of pages of one region
 *   region_records.c  the records about a region */
#ifndef CULET_REGION_H
#define CULET_REGION_H

#include "base/buffer.h"
#include "scope/format.h"

#include <stdbool.h>
#include <stdint.h>

struct culet_range {
    uint64_t start, end;
};

/* Pages of a leaf of a region's table. */
#define CULET_REGION_LEAF 512u

struct culet_region {
    uint32_t id;      /* its index */
    uint32_t arena;   /* CULET_NO_ARENA: none */
    const char *kind; /* "holds" in format.h */
    bool malloc;      /* its bytes belong to malloc's sums (those of Ruby's mapped pages do not) */
    bool full;        /* every byte is used */
    uint64_t start, end;
    uint64_t pages;         /* that it touches */
    unsigned char **leaves; /* of CULET_REGION_LEAF pages each; NULL: nothing there is used or in memory */
    struct culet_range *overhead; /* metadata and gaps, by address */
    size_t overhead_count, overhead_room;
    struct culet_buffer blocks; /* uint32_t each: units << CULET_BLOCK_STATE_BITS | state */
    uint64_t first_block;       /* address */
    uint64_t block_count;       /* blocks kept or not */
    struct culet_buffer slabs;  /* of the slabs record, without the current area */
    uint64_t slab_bytes, slab_block; /* the current area: its bytes, its block size */
};

/* Adjacent pages of a region, by index. */
struct culet_page_run {
    uint64_t first, count;
    const uint8_t *states; /* CULET_PAGE_* of each; NULL: all 0 */
    const uint16_t *used;  /* used units of 8 bytes of each; NULL: all alike, see `full` */
    bool full;             /* fully used; else not at all */
};

#define CULET_NO_ARENA UINT32_MAX

/* Sums over the pages of a region, in bytes. */
struct culet_region_sum {
    uint64_t used, used_resident;
    uint64_t free, free_resident, free_swapped;
    uint64_t overhead, overhead_resident;
};

struct culet_regions {
    struct culet_region **all; /* by address, without overlaps */
    size_t count, room;
    unsigned shift;       /* log2 of the page size */
    uint64_t block_count; /* of all regions */
    uint64_t max_blocks;  /* with more no blocks are written */
};

/* ---- region.c ---- */

/* Adds a region; start and end are multiples of 8. Nothing of it is used yet, or all of it with `full`. Page states are 0
 * until set. Returns NULL if it would be empty or overlap another region. */
struct culet_region *culet_region_new(struct culet_regions *regions, const char *kind, uint32_t arena, uint64_t start,
                                      uint64_t end, bool full);

/* Moves the end. Returns false, changing nothing, if the region would be empty or overlap the next one. */
bool culet_region_resize(const struct culet_regions *regions, struct culet_region *region, uint64_t end);

/* The region that contains this address, or NULL. */
struct culet_region *culet_regions_at(const struct culet_regions *regions, uint64_t address);

/* The first region that ends after this address, or NULL. */
struct culet_region *culet_regions_next(const struct culet_regions *regions, uint64_t address);

/* Adds a range of metadata or of memory of others. Ranges come in address order. */
void culet_region_add_overhead(struct culet_region *region, uint64_t from, uint64_t to);

/* Bytes of from..to that lie in pages with any of these state bits. */
uint64_t culet_region_bytes_in_state(const struct culet_regions *regions, const struct culet_region *region, uint64_t from,
                                     uint64_t to, uint8_t state);

/* Bytes of its pages that are in memory. */
uint64_t culet_region_resident(const struct culet_regions *regions, const struct culet_region *region);

struct culet_region_sum culet_region_sum(const struct culet_regions *regions, const struct culet_region *region);

/* ---- region_pages.c ---- */

/* Sets the page table for a region of `pages` pages, or for another number of them. */
void culet_region_set_pages(const struct culet_regions *regions, struct culet_region *region, uint64_t pages);

/* Marks the bytes from..to (multiples of 8) as used, or as free again. */
void culet_region_use(const struct culet_regions *regions, struct culet_region *region, uint64_t from, uint64_t to);
void culet_region_unuse(const struct culet_regions *regions, struct culet_region *region, uint64_t from, uint64_t to);

/* Marks everything from `address` on as free, except for `units` (of 8 bytes) of its page. */
void culet_region_rewind(const struct culet_regions *regions, struct culet_region *region, uint64_t address, uint16_t units);

/* Used units (of 8 bytes) of the page at this address. */
uint16_t culet_region_units(const struct culet_regions *regions, const struct culet_region *region, uint64_t address);

/* The longest run from page `index` on that the table describes in one way. The region must have that page. */
struct culet_page_run culet_region_page_run(const struct culet_region *region, uint64_t index);

/* State of the page at this address; 0 outside of the region. */
uint8_t culet_region_state(const struct culet_regions *regions, const struct culet_region *region, uint64_t address);

/* Sets the states of `count` pages from page number `first` on. */
void culet_region_set_states(const struct culet_regions *regions, struct culet_region *region, uint64_t first,
                             size_t count, const uint8_t *states);

/* Bytes of page `index` that belong to the region. */
uint64_t culet_region_page_share(const struct culet_regions *regions, const struct culet_region *region, uint64_t index);

/* Used bytes of page `index`, which is in the run. */
uint64_t culet_region_page_used(const struct culet_regions *regions, const struct culet_region *region,
                                const struct culet_page_run *run, uint64_t index);

/* ---- region_records.c ---- */

/* Adds an area of slabs: `bytes` in blocks of `block` bytes each, or CULET_SLABS_NONE, CULET_SLABS_LARGE. */
void culet_region_add_slabs(struct culet_region *region, uint64_t bytes, uint64_t block);

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

#endif
