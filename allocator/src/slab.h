/* slab.h - one slab: from an address to a block, creation and destruction, and its free pages. */
#pragma once

#include "pagemap.h"
#include "size_class.h"
#include "types.h"

/* Which block of a slab an address lies in. */
struct culet_block_index {
    size_t block; /* number in the slab */
    bool exact;   /* the address is the start of a block, or of the rest behind the last */
};

/* The block index of an offset in a slab. offset * ceil(2^64 / size) has the quotient in its upper half; the lower half is
 * below the factor if and only if the remainder is 0, since offsets are below 2^18 (D. Lemire, O. Kaser, N. Kurz, "Faster
 * remainder by direct computation", 2019). */
static inline struct culet_block_index culet_block_index(size_t offset, uint64_t reciprocal)
{
    unsigned __int128 product = (unsigned __int128)offset * reciprocal;

    return (struct culet_block_index){(size_t)(product >> 64), (uint64_t)product < reciprocal};
}

/* The block index of an address in a slab's pages. Never exact in a slab that is destroyed. */
static inline struct culet_block_index culet_slab_index(const struct culet_slab *slab, uintptr_t address)
{
    return culet_block_index(address - slab->span.start, slab->reciprocal);
}

/* Bytes from the start of a slab to its first block (slab coloring: J. Bonwick, "The Slab Allocator", 1994, section 4).
 * Neighbouring slabs of 16 pages have different ones. `pages`: the address of the slab's first page. */
static inline size_t culet_class_colour(const struct culet_class *c, uintptr_t pages)
{
    return (pages / (CULET_TINY_SLAB_PAGES * CULET_PAGE) & c->colours) * CULET_CACHE_LINE;
}

/* The address of a slab's first page. */
static inline uintptr_t culet_slab_pages(const struct culet_slab *slab)
{
    return slab->span.start & ~(uintptr_t)(CULET_PAGE - 1);
}

/* The block index of an address in a page that has this entry, of a slab. Does not read the slab. */
static inline struct culet_block_index culet_entry_index(uintptr_t entry, uintptr_t address)
{
    const struct culet_class *c = &culet_classes[culet_entry_class(entry)];
    size_t offset = culet_entry_offset(entry, address);

    return culet_block_index(offset - culet_class_colour(c, address - offset), c->reciprocal);
}

static inline unsigned culet_block_unit(size_t block)
{
    return (unsigned)(block / CULET_UNIT);
}

static inline uint64_t culet_block_bit(size_t block)
{
    return UINT64_C(1) << block % CULET_UNIT;
}

/* Whether the block's bit is set. */
static inline bool culet_block_in(size_t block, uint64_t bits)
{
    return bits >> block % CULET_UNIT & 1;
}

/* The unit that has the block. */
static inline struct culet_unit *culet_slab_unit(struct culet_slab *slab, size_t block)
{
    /* As an integer: the compiler adds the offset of `unit` in the address of the access. */
    return (struct culet_unit *)((uintptr_t)slab->unit + block / CULET_UNIT * sizeof(struct culet_unit));
}

/* The shape of a slab. */
static inline const struct culet_class *culet_slab_class(const struct culet_slab *slab)
{
    return &culet_classes[atomic_load_explicit(&slab->span.klass, memory_order_relaxed)];
}

/* The blocks of a unit that are not in use, freed by the holder or by another thread, and the bits that stand for none. */
static inline uint64_t culet_unit_unused(const struct culet_unit *unit)
{
    return atomic_load_explicit(&unit->free, memory_order_relaxed) |
           atomic_load_explicit(&unit->remote, memory_order_relaxed);
}

/* Frees a block of the holder's arena: its bit, the unit's free word `before`, and then the `unused` blocks. False: the
 * block was not live. The free word is changed first and the other one looked at afterwards: of two threads that free one
 * block at the same moment, at least one sees both, unless a store is still in its processor's buffer. [holder] */
static inline __attribute__((always_inline)) bool culet_unit_put(struct culet_unit *unit, size_t block,
                                                                 uint64_t *before, uint64_t *unused)
{
    *before = atomic_load_explicit(&unit->free, memory_order_relaxed);
    atomic_store_explicit(&unit->free, *before | culet_block_bit(block), memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t remote = atomic_load_explicit(&unit->remote, memory_order_relaxed);
    if (CULET_UNLIKELY(culet_block_in(block, *before | remote))) {
        atomic_store_explicit(&unit->free, *before, memory_order_relaxed);
        return false;
    }
    *unused = *before | culet_block_bit(block) | remote;
    return true;
}

/* Whether the program uses the block. False for an index that no slab has: that of an address in a slab that another
 * thread replaces meanwhile. */
static inline bool culet_slab_is_live(const struct culet_slab *slab, size_t block)
{
    return block < CULET_UNITS * CULET_UNIT &&
           !culet_block_in(block, culet_unit_unused(&slab->unit[block / CULET_UNIT]));
}

static inline uintptr_t culet_slab_address(const struct culet_slab *slab, size_t block)
{
    return slab->span.start + (uintptr_t)block * culet_slab_class(slab)->size;
}

/* A new slab with all blocks free and no unit available; NULL when out of memory. */
struct culet_slab *culet_slab_create(unsigned arena, unsigned klass);

/* Gives the slab's pages back to the page heap. [holder; no block live] */
void culet_slab_destroy(struct culet_slab *slab);

/* No block is live. [holder] */
bool culet_slab_is_free(const struct culet_slab *slab);

/* The pages that may be resident and overlap free blocks only, as far as they form whole pages of the kernel, as a mask.
 * [holder] */
uint64_t culet_slab_free_pages(const struct culet_slab *slab);

/* Clears (take) or sets (give) the free bits of the blocks that overlap these pages. [holder] */
void culet_slab_take_pages(struct culet_slab *slab, uint64_t pages);
void culet_slab_give_pages(struct culet_slab *slab, uint64_t pages);

/* The pages that a unit overlaps, as a mask. */
uint64_t culet_slab_unit_pages(const struct culet_slab *slab, unsigned unit);

/* Calls `visit` for every slab of every class. [pages lock] */
void culet_slab_each(void (*visit)(struct culet_slab *slab, void *data), void *data);
