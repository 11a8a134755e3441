/* empty_block.h - blocks of no bytes: addresses in an inaccessible range, and a bit for each live one.
 *
 * So an access to a block that was requested with a size of 0 ends the program instead of reaching a neighbour, as on
 * OpenBSD since 2001. Where there is no such address left, a request of no bytes gets a block of the smallest class. */
#pragma once

#include "types.h"

#define CULET_EMPTY_BLOCKS ((size_t)1 << 16)
#define CULET_EMPTY_BLOCKS_BYTES (CULET_EMPTY_BLOCKS * CULET_ALIGNMENT)

/* The range; NULL before the first request of no bytes. */
extern _Atomic uintptr_t culet_empty_blocks;

/* Whether the address lies in the range. */
static inline bool culet_empty_block_contains(const void *address)
{
    uintptr_t start = atomic_load_explicit(&culet_empty_blocks, memory_order_acquire);

    return start && (uintptr_t)address - start < CULET_EMPTY_BLOCKS_BYTES;
}

/* A block of no bytes, aligned to CULET_ALIGNMENT; NULL where the range is full or the kernel refuses it. Without locks. */
void *culet_empty_block_get(void);

/* Of an address in the range: whether it is a live block. The second also frees it. */
bool culet_empty_block_is_live(const void *address);
bool culet_empty_block_put(const void *address);
