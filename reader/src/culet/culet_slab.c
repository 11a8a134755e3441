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

bool culet_slab_next(const struct culet_selfmap *self, const struct culet_shape *shape, const unsigned char *slab,
                     struct culet_slab_range *range)
{
    uint32_t at = range->first + range->blocks, unit = at / self->unit_blocks, block = at % self->unit_blocks;

    if (at >= shape->blocks)
        return false;
    uint64_t used = used_blocks(self, slab, unit);
    *range = (struct culet_slab_range){.first = at, .state = used >> block & 1 ? CULET_BLOCK_USED : CULET_BLOCK_FREE};
    for (;;) {
        uint32_t left = shape->blocks - at, room = self->unit_blocks - block;
        unsigned run = run_length(used, block, block + (left < room ? left : room));
        range->blocks += run;
        at += run;
        if (at == shape->blocks || run < room)
            return true;
        used = used_blocks(self, slab, ++unit);
        block = 0;
        if ((used & 1) != (range->state == CULET_BLOCK_USED))
            return true;
    }
}
