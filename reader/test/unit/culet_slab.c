/* The blocks of a slab from a copy of its descriptor, compared with its bits one by one. */
#include "culet/culet_slab.h"

#include "check.h"

#define UNITS 16

static struct {
    uint64_t head[7];
    struct {
        uint64_t free, remote;
    } unit[UNITS];
} slab;

static struct culet_selfmap self = {
    .slab = {.bytes = sizeof slab, .units = sizeof slab.head, .unit_bytes = 16, .free = 0, .remote = 8}};

struct found {
    uint32_t next;
    uint64_t blocks[2];
    enum culet_block_state last;
};

static enum culet_block_state plain_state(uint32_t index)
{
    unsigned unit = index / self.unit_blocks, bit = index % self.unit_blocks;
    bool free = slab.unit[unit].free >> bit & 1, remote = slab.unit[unit].remote >> bit & 1;

    return free || remote ? CULET_BLOCK_FREE : CULET_BLOCK_USED;
}

static void each(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state)
{
    struct found *found = context;

    CHECK_EQUAL(first, found->next);
    CHECK(blocks > 0, "an empty range");
    CHECK(first == 0 || state != found->last, "a range goes on in the same state");
    for (uint32_t i = 0; i < blocks; i++)
        CHECK_EQUAL(plain_state(first + i), state);
    found->next = first + blocks;
    found->blocks[state] += blocks;
    found->last = state;
}

TEST(ranges_of_blocks_like_the_bits)
{
    uint64_t state = 11;

    for (unsigned i = 0; i < 4000; i++) {
        struct culet_shape shape = {.size = 16};
        /* Mostly whole units of 64, else of any length. */
        self.unit_blocks = i % 4 ? 64 : 1 + (uint32_t)(check_random(&state) % 64);
        shape.blocks = 1 + (uint32_t)(check_random(&state) % ((uint64_t)UNITS * self.unit_blocks));
        /* Bits behind the last block are set in some units, as no sound heap has them. */
        for (unsigned u = 0; u < UNITS; u++) {
            unsigned dense = (unsigned)check_random(&state) % 3;
            slab.unit[u].free = dense == 2 ? ~UINT64_C(0) : dense ? check_random(&state) : 0;
            slab.unit[u].remote = check_random(&state) & check_random(&state) & ~slab.unit[u].free;
        }
        struct found found = {0};
        culet_slab_each(&self, &shape, (const unsigned char *)&slab, each, &found);
        CHECK_EQUAL(found.next, shape.blocks);
        CHECK_EQUAL(found.blocks[0] + found.blocks[1], shape.blocks);
    }
}

CHECK_MAIN
