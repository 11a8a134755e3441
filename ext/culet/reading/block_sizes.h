/* reading/block_sizes.h - what the active malloc takes for a request: jemalloc a fifth more for 1,025 bytes, glibc nearly
 * twice as much for 25. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Requests of up to 1 KiB in steps of 16 bytes, larger ones in 64 steps of each doubling, up to 1 GiB. */
enum { CULET_BLOCK_STEPS = 64, CULET_BLOCK_DOUBLINGS = 20 };

struct culet_block_sizes {
    size_t (*usable)(void *block); /* NULL: malloc does not tell; each request counts as it is */
    size_t header_bytes;           /* of a block, beside the usable ones */
    /* Size of the block for the largest request of a step; 0: not yet measured. */
    uint64_t bytes[CULET_BLOCK_STEPS * (1 + CULET_BLOCK_DOUBLINGS)];
};

void culet_block_sizes_init(struct culet_block_sizes *sizes);

/* Bytes of the block for a request of so many bytes. For the first request of each step it allocates a block and frees it,
 * so it is for the forked copy of a process. */
uint64_t culet_block_bytes(struct culet_block_sizes *sizes, uint64_t request);
