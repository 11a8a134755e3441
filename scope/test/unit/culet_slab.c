/* The blocks of a slab from a copy of its descriptor, compared with its bits one by one. */
#include "culet/culet_slab.h"

#include "check.h"

#define UNITS 16

static struct {
    uint64_t head[7];
    struct {
        uint64_t live, claimed;
    } unit[UNITS];
} slab;

static const struct culet_selfmap self = {
    .slab = {.bytes = sizeof slab, .units = sizeof slab.head, .unit_bytes = 16, .live = 0, .claimed = 8}};

struct found {
    const struct culet_shape *shape;
    uint32_t next;
    uint64_t blocks[3];
    enum culet_block_state last;
};

static enum culet_block_state plain_state(const struct culet_shape *shape, uint32_t index)
{
    unsigned unit = index >> shape->unit_shift, bit = index & ((1u << shape->unit_shift) - 1);

    if (!(slab.unit[unit].live >> bit & 1))
        return CULET_BLOCK_FREE;
    return slab.unit[unit].claimed >> bit & 1 ? CULET_BLOCK_CACHED : CULET_BLOCK_USED;
}

static void each(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state)
{
    struct found *found = context;

    CHECK_EQUAL(first, found->next);
    CHECK(blocks > 0, "an empty range");
    CHECK(first == 0 || state != found->last, "a range goes on in the same state");
    for (uint32_t i = 0; i < blocks; i++)
        CHECK_EQUAL(plain_state(found->shape, first + i), state);
    found->next = first + blocks;
    found->blocks[state] += blocks;
    found->last = state;
}

TEST(ranges_of_blocks_like_the_bits)
{
    uint64_t state = 11;

    for (unsigned i = 0; i < 4000; i++) {
        struct culet_shape shape = {.size = 16, .unit_shift = (uint32_t)(check_random(&state) % 7)};
        shape.blocks = 1 + (uint32_t)(check_random(&state) % ((uint64_t)UNITS << shape.unit_shift));
        for (unsigned u = 0; u < UNITS; u++) {
            unsigned dense = (unsigned)check_random(&state) % 3;
            slab.unit[u].live = dense == 2 ? ~UINT64_C(0) : dense ? check_random(&state) : 0;
            slab.unit[u].claimed = check_random(&state) & check_random(&state) & slab.unit[u].live;
        }
        struct found found = {.shape = &shape};
        culet_slab_each(&self, &shape, (const unsigned char *)&slab, each, &found);
        CHECK_EQUAL(found.next, shape.blocks);
        CHECK_EQUAL(found.blocks[0] + found.blocks[1] + found.blocks[2], shape.blocks);
    }
}

CHECK_MAIN
