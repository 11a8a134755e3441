#include "ruby_transient.h"

#include "names.h"

#define HEAP_BYTES (UINT64_C(32) << 20)

/* A block begins with 16-bit numbers (bytes taken of its contents, bytes that were marked or -1, objects, and none), and
 * a pointer to another block or NULL. All blocks' are written when Ruby starts, so none is zero. */
#define HEADER 16u
#define ROOM (CULET_TRANSIENT_BLOCK - HEADER)

/* So many blocks side by side are no chance. */
#define LEAST_BLOCKS 64

static uint64_t taken(uint64_t word)
{
    return word & 0xffff;
}

static bool is_block(uint64_t address, const uint64_t words[2])
{
    uint64_t distance = words[1] > address ? words[1] - address : address - words[1];

    return words[0] && !(words[0] >> 48) && taken(words[0]) <= ROOM && words[1] % CULET_TRANSIENT_BLOCK == 0 &&
           (!words[1] || distance < HEAP_BYTES);
}

void culet_transient_note(struct culet_transient *transient, uint64_t address, const uint64_t words[2])
{
    if (address % CULET_TRANSIENT_BLOCK || !is_block(address, words))
        return;
    transient->blocks = culet_grow(transient->blocks, &transient->room, transient->count + 1, sizeof *transient->blocks);
    transient->blocks[transient->count++] = address;
}

/* Where the first long row of blocks begins; 0 if there is none. */
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

void culet_transient_walk(struct culet_scope *scope, struct culet_transient *transient)
{
    uint64_t start = find_row(transient), end = start + HEAP_BYTES, word;
    const struct culet_mapping *mapping = start ? culet_maps_at(&scope->maps, start) : NULL;

    if (!mapping)
        return;
    if (end > mapping->end)
        end = mapping->end;
    transient->place = culet_scope_place(scope, "transient", CULET_NO_ARENA, start, end, false);
    if (!transient->place)
        return;
    transient->place->malloc = false;
    culet_scope_states(scope, transient->place, start, end);
    /* Ruby 3.2 asks malloc for it. In a heap that is told by pages what lies around it is the allocator's. */
    if (!scope->by_pages)
        culet_names_range(&scope->maps, start, end, "ruby", "Ruby's transient heap");
    for (uint64_t at = start; at < end; at += CULET_TRANSIENT_BLOCK)
        if (culet_memory_word(&scope->memory, at, &word) && taken(word) && taken(word) <= ROOM)
            culet_place_use(&scope->places, transient->place, at, at + HEADER + (taken(word) & ~UINT64_C(7)));
}
