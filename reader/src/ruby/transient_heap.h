/* transient_heap.h - the transient heap of Ruby up to 3.2: 32 MiB in blocks of 32 KiB, for the contents of young
 * arrays, hashes and structs (transient_heap.c of CRuby 2.6 to 3.2). */
#pragma once

#include "reading.h"

#define CULET_TRANSIENT_BLOCK 32768u

struct culet_transient {
    uint64_t *blocks; /* addresses that look like blocks, in order */
    size_t count, room;
    struct culet_region *region; /* NULL: none */
};

/* Notes the address if its first two words look like a block. */
void culet_transient_note(struct culet_transient *transient, uint64_t address, const uint64_t words[2]);

/* Makes the region if there are enough adjacent blocks. Needs a pause. */
void culet_transient_walk(struct culet_reading *reading, struct culet_transient *transient);
