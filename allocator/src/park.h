/* park.h - the few blocks of each class that a thread freed last, while several threads use the heap.
 *
 * A free that finds its unit full and a request that finds its claim used up have to visit the bin, for whose lock
 * threads that replace blocks one by one would wait all the time. So a free parks its block, and the next request whose
 * claim is used up takes it. The heap's owner, who has no lock to wait for, parks nothing: with the life times of Ruby's
 * blocks that would cost as much as it saves.
 *
 * A parked block stays live in its unit's word, so that the bin need not know of it, and is marked in the word `parked`,
 * so that a second free of it is caught like any other.
 *
 * All of this happens between culet_bias_enter and culet_bias_leave. `owner`: what the former said. */
#ifndef CULET_PARK_H
#define CULET_PARK_H

#include "size_class.h"
#include "slab.h"
#include "types.h"

#define CULET_PLACE_SHIFT 56

static inline struct culet_unit *culet_parked_unit(struct culet_parked parked)
{
    return (struct culet_unit *)(parked.place & ((UINT64_C(1) << CULET_PLACE_SHIFT) - 1));
}

static inline uint64_t culet_parked_bit(struct culet_parked parked)
{
    return UINT64_C(1) << (parked.place >> CULET_PLACE_SHIFT);
}

static inline uint64_t culet_park_count(const struct culet_park *park)
{
    return atomic_load_explicit(&park->count, memory_order_relaxed);
}

static inline bool culet_park_has_room(const struct culet_park *park, const struct culet_class *c)
{
    return culet_park_count(park) < atomic_load_explicit(&c->parks, memory_order_relaxed);
}

/* Puts a live block, whose bit the caller sets in `parked`, on a stack that has room. */
static inline void culet_park_push(struct culet_park *park, uintptr_t block, struct culet_unit *unit, unsigned number)
{
    uint64_t count = culet_park_count(park);

    park->block[count] = (struct culet_parked){block, (uintptr_t)unit | (uintptr_t)number << CULET_PLACE_SHIFT};
    atomic_store_explicit(&park->count, count + 1, memory_order_relaxed);
}

/* Takes the last one off a stack of `count` blocks, at least one. */
static inline void *culet_park_pop(struct culet_park *park, uint64_t count, bool owner)
{
    struct culet_parked last = park->block[count - 1];
    _Atomic uint64_t *parked = &culet_parked_unit(last)->parked;

    atomic_store_explicit(&park->count, count - 1, memory_order_relaxed);
    if (CULET_LIKELY(owner))
        atomic_store_explicit(parked, atomic_load_explicit(parked, memory_order_relaxed) & ~culet_parked_bit(last),
                              memory_order_relaxed);
    else
        atomic_fetch_and_explicit(parked, ~culet_parked_bit(last), memory_order_acq_rel);
    return (void *)last.block;
}

/* Those of a unit's blocks that are on the stack. */
static inline uint64_t culet_park_bits(const struct culet_park *park, const struct culet_unit *unit)
{
    uint64_t bits = 0;

    for (uint64_t i = 0; i < culet_park_count(park); i++)
        if (culet_parked_unit(park->block[i]) == unit)
            bits |= culet_parked_bit(park->block[i]);
    return bits;
}

/* Frees what a thread has parked of a class. */
void culet_park_empty(struct culet_park *park, unsigned klass, bool owner);

#endif
