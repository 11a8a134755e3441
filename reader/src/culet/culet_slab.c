#include "culet/culet_slab.h"

#include "base/bytes.h"

/* The blocks of a unit that the program uses, one bit each. Bits behind the slab's last block mean nothing. */
static uint64_t used_blocks(const struct culet_selfmap *self, const unsigned char *slab, unsigned unit)
{
    const unsigned char *at = slab + self->slab.units + unit * self->slab.unit_bytes;

    return ~(culet_word_at(at + self->slab.free) | culet_word_at(at + self->slab.remote));
}

/* Number of blocks from `block` on in the state of that block, up to `blocks`. */
static unsigned run_length(uint64_t used, unsigned block, unsigned blocks)
{
    uint64_t others = (used >> block & 1 ? ~used : used) >> block;
    unsigned length = others ? (unsigned)__builtin_ctzll(others) : 64 - block;

    return length < blocks - block ? length : blocks - block;
}

void culet_slab_each(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     culet_slab_range *each, void *context)
{
    enum culet_block_state state = CULET_BLOCK_FREE;
    uint32_t first = 0, length = 0;

    for (uint32_t done = 0, blocks; done < shape->blocks; done += blocks) {
        uint64_t used = used_blocks(self, slab, done / self->unit_blocks);
        blocks = shape->blocks - done < self->unit_blocks ? shape->blocks - done : self->unit_blocks;
        for (unsigned n = 0, run; n < blocks; n += run) {
            enum culet_block_state now = used >> n & 1 ? CULET_BLOCK_USED : CULET_BLOCK_FREE;
            run = run_length(used, n, blocks);
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
