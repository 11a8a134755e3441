#include "ruby/transient_heap.h"

#define HEAP_BYTES (UINT64_C(32) << 20)

/* A block begins with 16-bit numbers (used bytes, marked bytes or -1, objects, 0) and a pointer to another block or
 * NULL. Ruby writes all headers when it starts, so none is zero. */
#define HEADER 16u
#define CONTENTS (CULET_TRANSIENT_BLOCK - HEADER)

/* So many adjacent blocks are no coincidence. */
#define LEAST_BLOCKS 64

static uint64_t used_bytes(uint64_t word)
{
    return word & 0xffff;
}

static bool is_block(uint64_t address, const uint64_t words[2])
{
    uint64_t distance = words[1] > address ? words[1] - address : address - words[1];

    return words[0] && !(words[0] >> 48) && used_bytes(words[0]) <= CONTENTS && words[1] % CULET_TRANSIENT_BLOCK == 0 &&
           (!words[1] || distance < HEAP_BYTES);
}

void culet_transient_note(struct culet_transient *transient, uint64_t address, const uint64_t words[2])
{
    if (address % CULET_TRANSIENT_BLOCK == 0 && is_block(address, words))
        CULET_APPEND(transient->blocks, transient->count, transient->room) = address;
}

/* The start of the first long row of adjacent blocks; 0: none. */
static uint64_t find_row(const struct culet_transient *transient)
{
    size_t length = 1;

    for (size_t i = 1; i < transient->count; i++) {
        length = transient->blocks[i] == transient->blocks[i - 1] + CULET_TRANSIENT_BLOCK ? length + 1 : 1;
        if (length == LEAST_BLOCKS)
            return transient->blocks[i] - (LEAST_BLOCKS - 1) * CULET_TRANSIENT_BLOCK;
    }
    return 0;
}

void culet_transient_walk(struct culet_reading *reading, struct culet_transient *transient)
{
    uint64_t start = find_row(transient), end = start + HEAP_BYTES, word;
    const struct culet_mapping *mapping = start ? culet_maps_at(&reading->maps, start) : NULL;

    if (!mapping)
        return;
    if (end > mapping->end)
        end = mapping->end;
    transient->region = culet_reading_new_region(reading, "transient", CULET_NO_ARENA, start, end, false);
    if (!transient->region)
        return;
    transient->region->malloc = false;
    culet_reading_note_states(reading, transient->region, start, end);
    /* Ruby 3.2 allocates it by malloc: in a heap reported by pages the rest of the mapping is the allocator's. */
    if (!reading->malloc_by_pages)
        culet_maps_name_range(&reading->maps, start, end, "ruby", "Ruby's transient heap");
    for (uint64_t at = start; at < end; at += CULET_TRANSIENT_BLOCK)
        if (culet_memory_word(&reading->memory, at, &word) && used_bytes(word) && used_bytes(word) <= CONTENTS)
            culet_region_use(transient->region, at, at + HEADER + (used_bytes(word) & ~UINT64_C(7)));
}
