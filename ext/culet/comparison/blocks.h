/* comparison/blocks.h - the malloc blocks of a process, at five bytes each, with an index by address. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "reader/format.h"

/* No block. */
#define COMPARISON_NONE UINT32_MAX

/* Adjacent blocks. */
struct comparison_run {
    uint64_t first, past; /* addresses */
    uint32_t at, count;   /* number of the first block; number of blocks */
    uint32_t index;       /* start of its part of the index */
    unsigned shift;       /* log2 of the units per entry of the index */
};

struct comparison_blocks {
    uint64_t header_bytes; /* from a block's start to the address that the program has */
    uint32_t *starts;      /* of each block, in units from the start of its run */
    unsigned char *states;
    uint32_t count;
    uint32_t capacity;
    struct comparison_run *runs; /* in address order */
    size_t run_count, run_capacity;
    uint32_t *index; /* per run: how many of its blocks start before each step of addresses */
    size_t index_capacity;
    size_t last_run; /* used last */
};

/* Reserves space for `count` more blocks. Returns 0 if they exceed the numbers available. Raises NoMemoryError. */
int culet_comparison_blocks_reserve(struct comparison_blocks *blocks, uint64_t count);

/* Adds the blocks of a region, in address order, after culet_comparison_blocks_reserve.
 *
 * first, past: addresses of the region
 * payload: the numbers of its C record (reader/format.h)
 * Returns 0 if the record is truncated or exceeds the region. */
int culet_comparison_blocks_add(struct comparison_blocks *blocks, uint64_t first, uint64_t past,
                                const unsigned char *payload, size_t bytes);

/* Counts the numbers in a record. */
uint64_t culet_comparison_numbers(const unsigned char *payload, size_t bytes);

/* Number of the block at an address, or COMPARISON_NONE. */
uint32_t culet_comparison_block_at(struct comparison_blocks *blocks, uint64_t address);

/* Number of the first block that ends after an address, or COMPARISON_NONE. */
uint32_t culet_comparison_block_after(struct comparison_blocks *blocks, uint64_t address);

/* Number of the used block that the program has by this address, or COMPARISON_NONE. */
uint32_t culet_comparison_block_known_by(struct comparison_blocks *blocks, uint64_t address);

/* Start and end of a block. */
void culet_comparison_block_bounds(struct comparison_blocks *blocks, uint32_t block, uint64_t *first, uint64_t *past);

void culet_comparison_blocks_free(struct comparison_blocks *blocks);
