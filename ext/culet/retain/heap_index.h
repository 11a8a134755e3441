/* retain/heap_index.h - numbers the slots of Ruby's heap, by page and slot.
 *
 * A number takes half the room of an address, and arrays that are indexed by it need no hash. */
#pragma once

#include "retain/memory.h"

#define CULET_NO_ID UINT32_MAX

/* A run of slots of one size. */
struct culet_heap_run {
    uintptr_t start, past;
    uint32_t first; /* number of the first slot */
    uint32_t slot_bytes;
    uint32_t reciprocal; /* of slot_bytes in units of 8 bytes, so that no division is needed */
};

CULET_LIST(culet_heap_runs, struct culet_heap_run)

struct culet_heap_index {
    struct culet_heap_runs runs;
    struct culet_numbers table; /* by the address's granule: number of the run + 1 */
    struct culet_numbers pages; /* by the slot's number: number of its run */
    uint32_t mask;              /* of the table */
    uint32_t ids;               /* slots in all */
};

/* Adds a run; all before the index is made. Returns false without memory. */
bool culet_heap_index_add(struct culet_memory *memory, struct culet_heap_index *index, uintptr_t start, uintptr_t past,
                          size_t slot_bytes);

/* Makes the index of all runs. Returns false without memory, or with 2^29 slots. */
bool culet_heap_index_make(struct culet_memory *memory, struct culet_heap_index *index);

/* The number of the slot at an address; CULET_NO_ID: there is none. */
uint32_t culet_heap_index_id(const struct culet_heap_index *index, uintptr_t address);

/* The run that has a slot. */
const struct culet_heap_run *culet_heap_index_run(const struct culet_heap_index *index, uint32_t id);

static inline uintptr_t culet_heap_index_address(const struct culet_heap_index *index, uint32_t id)
{
    const struct culet_heap_run *run = culet_heap_index_run(index, id);

    return run->start + (uintptr_t)(id - run->first) * run->slot_bytes;
}
