#include "culet/culet_slab.h"

#include "base/bytes.h"

struct culet_bits culet_slab_bits(const struct culet_selfmap *self, const unsigned char *slab, unsigned unit)
{
    const unsigned char *at = slab + self->slab.units + unit * self->slab.unit_bytes;
    uint64_t live = culet_word_at(at + self->slab.live), claimed = culet_word_at(at + self->slab.claimed);

    return (struct culet_bits){.used = live & ~claimed, .cached = live & claimed};
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

static enum culet_block_state state_of(const struct culet_bits *bits, unsigned block)
{
    if (bits->used >> block & 1)
        return CULET_BLOCK_USED;
    return bits->cached >> block & 1 ? CULET_BLOCK_CACHED : CULET_BLOCK_FREE;
}

/* Number of blocks from `block` on in this state, up to `blocks`. */
static unsigned run_length(const struct culet_bits *bits, unsigned block, unsigned blocks, enum culet_block_state state)
{
    uint64_t alike = state == CULET_BLOCK_USED     ? bits->used
                     : state == CULET_BLOCK_CACHED ? bits->cached
                                                   : ~(bits->used | bits->cached);
    uint64_t others = ~alike >> block;
    unsigned length = others ? (unsigned)__builtin_ctzll(others) : 64 - block;

    return length < blocks - block ? length : blocks - block;
}

void culet_slab_each(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     culet_slab_range *each, void *context)
{
    enum culet_block_state state = CULET_BLOCK_FREE;
    uint32_t first = 0, length = 0;

    for (unsigned u = 0; u < culet_slab_units(shape); u++) {
        struct culet_bits bits = culet_slab_bits(self, slab, u);
        unsigned blocks = culet_slab_unit_blocks(shape, u);
        for (unsigned n = 0, run; n < blocks; n += run) {
            enum culet_block_state now = state_of(&bits, n);
            run = run_length(&bits, n, blocks, now);
            if (now != state && length) {
                each(context, first, length, state);
                first += length;
                length = 0;
            }
            state = now;
            length += run;
        }
    }
    if (length)
        each(context, first, length, state);
}
