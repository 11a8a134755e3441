#include "blocks.h"

#include "store.h"

/* Knuth's multiplicative hashing (The Art of Computer Programming, volume 3, 6.4): 2^64 / golden ratio. */
#define GOLDEN 0x9e3779b97f4a7c15u

static size_t home(const struct culet_blocks *blocks, uint64_t address)
{
    return (size_t)(address * GOLDEN >> 20) & (blocks->size - 1);
}

static size_t find(const struct culet_blocks *blocks, uint64_t address)
{
    size_t at = home(blocks, address);

    while (blocks->places[at].address && blocks->places[at].address != address)
        at = (at + 1) & (blocks->size - 1);
    return at;
}

/* At most half of the places are used, so that runs stay short. */
static void make_room(struct culet_blocks *blocks)
{
    struct culet_blocks larger = {.size = blocks->size ? 2 * blocks->size : 4096, .used = blocks->used};

    if (blocks->size && blocks->used < blocks->size / 2)
        return;
    larger.places = culet_store_new(larger.size, sizeof *larger.places);
    for (size_t i = 0; i < blocks->size; i++)
        if (blocks->places[i].address)
            larger.places[find(&larger, blocks->places[i].address)] = blocks->places[i];
    culet_blocks_free(blocks);
    *blocks = larger;
}

bool culet_blocks_put(struct culet_blocks *blocks, uint64_t address, uint32_t slot, uint32_t *before)
{
    make_room(blocks);
    struct culet_place *place = &blocks->places[find(blocks, address)];
    bool fresh = !place->address;

    *before = place->slot;
    blocks->used += fresh;
    place->address = address;
    place->slot = slot;
    return fresh;
}

/* Those behind move up, so that no run has a hole (Knuth, algorithm R of the same section). */
static void close_gap(struct culet_blocks *blocks, size_t hole)
{
    size_t mask = blocks->size - 1;

    for (size_t at = (hole + 1) & mask; blocks->places[at].address; at = (at + 1) & mask) {
        if (((at - home(blocks, blocks->places[at].address)) & mask) < ((at - hole) & mask))
            continue;
        blocks->places[hole] = blocks->places[at];
        hole = at;
    }
    blocks->places[hole].address = 0;
}

bool culet_blocks_take(struct culet_blocks *blocks, uint64_t address, uint32_t *slot)
{
    if (!blocks->size)
        return false;

    size_t at = find(blocks, address);
    if (!blocks->places[at].address)
        return false;
    *slot = blocks->places[at].slot;
    blocks->used--;
    close_gap(blocks, at);
    return true;
}

void culet_blocks_free(struct culet_blocks *blocks)
{
    if (blocks->places)
        culet_store_free(blocks->places, blocks->size, sizeof *blocks->places);
    blocks->places = NULL;
    blocks->size = 0;
}
