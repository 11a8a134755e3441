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

static enum culet_block_state plain_state(uint32_t index)
{
    unsigned unit = index / self.unit_blocks, bit = index % self.unit_blocks;
    bool free = slab.unit[unit].free >> bit & 1, remote = slab.unit[unit].remote >> bit & 1;

    return free || remote ? CULET_BLOCK_FREE : CULET_BLOCK_USED;
}

/* Returns the number of blocks in all ranges. */
static uint32_t check_ranges(const struct culet_shape *shape)
{
    struct culet_slab_range range = {0}, last = {0};

    for (; culet_slab_next(&self, shape, (const unsigned char *)&slab, &range); last = range) {
        CHECK_EQUAL(range.first, last.first + last.blocks);
        CHECK(range.blocks > 0, "an empty range");
        CHECK(range.first == 0 || range.state != last.state, "a range goes on in the same state");
        for (uint32_t i = 0; i < range.blocks; i++)
            CHECK_EQUAL(plain_state(range.first + i), range.state);
    }
    return last.first + last.blocks;
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
        CHECK_EQUAL(check_ranges(&shape), shape.blocks);
    }
}

CHECK_MAIN
