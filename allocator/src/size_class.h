/* size_class.h - request size to size class, and the shape of each class's slabs.
 *
 * Multiples of 16 up to 1 KiB (mean waste 2.7 % over 17 to 1,024 bytes), then nine classes per doubling: eight equal
 * steps, each 1/32 of the doubling's start above a round size (waste at most 1/9 of a block), for strings and buffers
 * whose length is a round size plus a terminator or a short head; and the power of two at the end. */
#pragma once

#include "types.h"

extern struct culet_class culet_classes[CULET_CLASSES];

/* Fills culet_classes; once, before any other use. */
void culet_size_class_setup(void);

/* The class for `bytes`, which must be at most CULET_SMALL_MAX; 0 bytes get the smallest block. */
static inline unsigned culet_size_class(size_t bytes)
{
    if (CULET_LIKELY(bytes <= CULET_TINY_MAX))
        return (unsigned)((bytes + CULET_ALIGNMENT - 1) / CULET_ALIGNMENT) + (bytes == 0);

    unsigned doubling = 63 - (unsigned)__builtin_clzl(bytes - 1); /* 2^doubling < bytes <= 2^(doubling + 1) */
    size_t above = bytes - 1 - ((size_t)1 << doubling), more = (size_t)1 << (doubling - 5);
    unsigned eighths = above < more ? 0 : (unsigned)((above - more) >> (doubling - 3)) + 1;
    return CULET_TINY_CLASSES + 1 + (doubling - 10) * CULET_DOUBLING_CLASSES + eighths;
}

/* All sizes of classes above CULET_TINY_MAX are multiples of this many bytes. */
#define CULET_CLASS_STEP 32

extern _Atomic uint8_t culet_classes_above_tiny[(CULET_SMALL_MAX - CULET_TINY_MAX) / CULET_CLASS_STEP];

/* The class of a request of CULET_TINY_MAX + 1 to CULET_SMALL_MAX bytes, from a table; 0 before the set-up. */
static inline unsigned culet_size_class_above_tiny(size_t bytes)
{
    return atomic_load_explicit(&culet_classes_above_tiny[(bytes - CULET_TINY_MAX - 1) / CULET_CLASS_STEP],
                                memory_order_relaxed);
}

/* The class of the same size in the set that malloc uses. */
static inline unsigned culet_size_class_plain(unsigned klass)
{
    return klass > CULET_SIZES ? klass - CULET_SIZES : klass;
}

/* The blocks of a unit: its free word when none of them is live. 0 behind the last unit. */
static inline uint64_t culet_class_all(const struct culet_class *c, unsigned unit)
{
    unsigned before = unit * CULET_UNIT;

    if (before >= c->count)
        return 0;
    return c->count - before >= CULET_UNIT ? ~UINT64_C(0) : (UINT64_C(1) << (c->count - before)) - 1;
}

/* Units per slab. */
static inline unsigned culet_class_units(const struct culet_class *c)
{
    return (c->count + CULET_UNIT - 1u) / CULET_UNIT;
}

/* Whether realloc leaves a block in place: while at least three quarters of it are used; small blocks have 16 bytes
 * more. */
static inline bool culet_size_stays(size_t bytes, size_t usable)
{
    return bytes <= usable && usable - bytes <= usable / 4 + CULET_ALIGNMENT;
}

/* The smallest class for `bytes` whose blocks are all aligned to `alignment`, a power of two; 0 when there is none, or
 * when pages of its own are less for the request. */
unsigned culet_size_class_aligned(size_t bytes, size_t alignment);
