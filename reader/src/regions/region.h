/* region.h - a region of a heap: used bytes per kernel page, the pages' states when the region was walked, and its
 * blocks.
 *
 * The table of pages takes three bytes per page, in leaves that exist only where a page is used in part or in
 * memory. So a region of 8 TiB takes 32 MB of addresses and hardly any memory. */
#pragma once

#include "base/buffer.h"
#include "reader/format.h"

#include <stdbool.h>
#include <stdint.h>

struct culet_range {
    uint64_t start, end;
};

struct culet_region {
    uint32_t id;      /* its index */
    uint32_t arena;   /* CULET_NO_ARENA: none */
    const char *kind; /* "holds" in format.h */
    bool malloc;      /* its bytes belong to malloc's sums (those of Ruby's mapped pages do not) */
    bool full;        /* every byte is used */
    uint64_t start, end;
    unsigned shift;               /* log2 of the page size */
    uint64_t pages;               /* that it touches */
    unsigned char **leaves;       /* of 512 pages each; NULL: nothing there is used or in memory */
    struct culet_range *overhead; /* metadata and gaps, by address */
    size_t overhead_count, overhead_room;
    struct culet_buffer blocks; /* uint32_t each: units << CULET_BLOCK_STATE_BITS | state */
    uint64_t first_block;       /* address */
    uint64_t block_count;       /* blocks kept or not */
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

/* Sets the page table for a region of `pages` pages, or for another number of them. */
void culet_region_set_pages(struct culet_region *region, uint64_t pages);

/* Marks the bytes from..to (multiples of 8) as used, or as free again. */
void culet_region_use(struct culet_region *region, uint64_t from, uint64_t to);
void culet_region_unuse(struct culet_region *region, uint64_t from, uint64_t to);

/* Marks all of a full region as free. */
void culet_region_empty(struct culet_region *region);

/* Marks everything from `address` on as free, except for `units` (of 8 bytes) of its page. */
void culet_region_rewind(struct culet_region *region, uint64_t address, uint16_t units);

/* Used units (of 8 bytes) of the page at this address. */
uint16_t culet_region_units(const struct culet_region *region, uint64_t address);

/* The longest run from page `index` on that the table describes in one way. The region must have that page. */
struct culet_page_run culet_region_page_run(const struct culet_region *region, uint64_t index);

/* Sets the states of `count` pages from page number `first` on. */
void culet_region_set_states(struct culet_region *region, uint64_t first, size_t count, const uint8_t *states);

/* Used bytes of page `index`, which is in the run. */
uint64_t culet_region_page_used(const struct culet_region *region, const struct culet_page_run *run, uint64_t index);

/* Adds a range of metadata or of memory of others. Ranges come in address order. */
void culet_region_add_overhead(struct culet_region *region, uint64_t from, uint64_t to);

/* Bytes of from..to that lie in pages with any of these state bits. */
uint64_t culet_region_bytes_in_state(const struct culet_region *region, uint64_t from, uint64_t to, uint8_t state);

struct culet_region_sum culet_region_sum(const struct culet_region *region);
