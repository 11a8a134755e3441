/* blocks.h - which block of the trace is at an address: a hash table with open addressing. */
#ifndef CULET_BLOCKS_H
#define CULET_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct culet_blocks {
    struct culet_place {
        uint64_t address; /* 0: nothing is here */
        uint32_t slot;
    } *places;
    size_t size; /* a power of two */
    size_t used;
};

/* Notes that a block is at an address.
 *
 * @return whether the address was free; otherwise `*before` is the slot that was there */
bool culet_blocks_put(struct culet_blocks *blocks, uint64_t address, uint32_t slot, uint32_t *before);

/* Forgets what is at an address.
 *
 * @return whether there was anything; `*slot` is what */
bool culet_blocks_take(struct culet_blocks *blocks, uint64_t address, uint32_t *slot);

void culet_blocks_free(struct culet_blocks *blocks);

#endif
