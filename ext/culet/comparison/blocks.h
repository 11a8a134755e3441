/*
 * comparison/blocks.h - the blocks of a process's malloc, in five bytes each, with an index from addresses to them.
 */
#ifndef CULET_COMPARISON_BLOCKS_H
#define CULET_COMPARISON_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "scope/format.h"

/* No block. */
#define COMPARISON_NONE UINT32_MAX

/* Blocks that follow each other without a gap. */
struct comparison_run {
  uint64_t first, past; /* addresses */
  uint32_t at, count;   /* number of the first block; how many */
  uint32_t index;       /* where its part of the index begins */
  unsigned shift;       /* an entry of the index stands for so many units, as a power of two */
};

struct comparison_blocks {
  uint64_t header_bytes; /* from a block's start to the address that the program gets */
  uint32_t *starts;      /* of each block, in units from its run's first */
  unsigned char *states;
  uint32_t count;
  uint32_t capacity;
  struct comparison_run *runs; /* in address order */
  size_t run_count, run_capacity;
  uint32_t *index; /* of each run: how many of its blocks start before each step of addresses */
  size_t index_capacity;
  size_t last_run; /* that was asked for */
};

/*
 * Makes room for `count` further blocks.
 * Returns 0 where there would be more than can be numbered. Raises NoMemoryError.
 */
int culet_comparison_blocks_reserve(struct comparison_blocks *blocks, uint64_t count);

/*
 * Adds the blocks of one region, for which there is room. Regions come in address order.
 *
 * first, past: the region's addresses
 * payload: its C record behind the number (scope/format.h), as long as `bytes`
 * Returns 0 where the record is cut off, or leads out of the region.
 */
int culet_comparison_blocks_add(struct comparison_blocks *blocks, uint64_t first, uint64_t past, const unsigned char *payload, size_t bytes);

/* How many numbers a record has. */
uint64_t culet_comparison_numbers(const unsigned char *payload, size_t bytes);

/* Number of the block that has an address, COMPARISON_NONE where there is none. */
uint32_t culet_comparison_block_at(struct comparison_blocks *blocks, uint64_t address);

/* Number of the first block that ends behind an address, COMPARISON_NONE where there is none. */
uint32_t culet_comparison_block_after(struct comparison_blocks *blocks, uint64_t address);

/* Number of the block in use that the program knows by this address, else COMPARISON_NONE. */
uint32_t culet_comparison_block_known_by(struct comparison_blocks *blocks, uint64_t address);

/* Addresses where a block begins and ends. */
void culet_comparison_block_bounds(struct comparison_blocks *blocks, uint32_t block, uint64_t *first, uint64_t *past);

void culet_comparison_blocks_free(struct comparison_blocks *blocks);

#endif
