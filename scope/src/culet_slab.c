#include "culet_slab.h"

#include <string.h>

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

struct culet_bits culet_slab_bits(const struct culet_selfmap *self, const unsigned char *slab, unsigned unit)
{
    const unsigned char *at = slab + self->slab.units + unit * self->slab.unit_bytes;
    uint64_t live = word_at(at + self->slab.live);
    struct culet_bits bits = {.claimed = word_at(at + self->slab.claimed) & live};

    bits.used = live & ~bits.claimed;
    return bits;
}

unsigned culet_slab_units(const struct culet_shape *shape)
{
    return ((shape->blocks - 1) >> shape->unit_shift) + 1;
}

unsigned culet_slab_unit_blocks(const struct culet_shape *shape, unsigned unit)
{
    unsigned first = unit << shape->unit_shift, left = shape->blocks - first;

    return left < 1u << shape->unit_shift ? left : 1u << shape->unit_shift;
}

static enum culet_block_state state_of(const struct culet_bits *bits, unsigned number)
{
    if (bits->used >> number & 1)
        return CULET_BLOCK_USED;
    return bits->claimed >> number & 1 ? CULET_BLOCK_CACHED : CULET_BLOCK_FREE;
}

/* How many blocks from `number` on are in the same state as it, of `blocks`. */
static unsigned same(const struct culet_bits *bits, unsigned number, unsigned blocks, enum culet_block_state state)
{
    uint64_t alike = state == CULET_BLOCK_USED     ? bits->used
                     : state == CULET_BLOCK_CACHED ? bits->claimed
                                                   : ~(bits->used | bits->claimed);
    uint64_t others = ~alike >> number;
    unsigned length = others ? (unsigned)__builtin_ctzll(others) : 64 - number;

    return length < blocks - number ? length : blocks - number;
}

void culet_slab_each(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     culet_slab_range *each, void *context)
{
    enum culet_block_state state = CULET_BLOCK_FREE;
    uint32_t first = 0, length = 0;

    for (unsigned u = 0; u < culet_slab_units(shape); u++) {
        struct culet_bits bits = culet_slab_bits(self, slab, u);
        unsigned blocks = culet_slab_unit_blocks(shape, u);
        for (unsigned n = 0, here; n < blocks; n += here) {
            enum culet_block_state now = state_of(&bits, n);
            here = same(&bits, n, blocks, now);
            if (now != state && length) {
                each(context, first, length, state);
                first += length;
                length = 0;
            }
            state = now;
            length += here;
        }
    }
    if (length)
        each(context, first, length, state);
}
