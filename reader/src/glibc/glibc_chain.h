/* glibc_chain.h - recognizes chunks where no structure points to them. */
#pragma once

#include "glibc/glibc_heap.h"

/* Whether a chain of chunks begins at `address` that reaches `end`, or is too long to be a coincidence. Charges the
 * steps to heap->chain_steps; without any left there is no chain. */
bool culet_glibc_chain(struct culet_reading *reading, struct culet_glibc *heap, uint64_t address, uint64_t end);

/* A search for the end of a gap, which may take several slices. Initialize to zero. */
struct culet_glibc_gap {
    uint64_t start, searched_to;
};

/* Finds where the heap goes on after a gap that another user of brk has left at `from`: *next is a chunk, or the
 * arena's top. Returns false if the slice is over before that is known. */
bool culet_glibc_gap_end(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                         struct culet_glibc_gap *gap, uint64_t from, uint64_t *next);
