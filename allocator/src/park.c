#include "park.h"

#include "bin.h"
#include "pagemap.h"

/* The block is in no hands any more: first it is not parked, then not live, so that who takes it finds it so. */
static void put_back(struct culet_parked parked, unsigned klass, bool owner)
{
    struct culet_unit *unit = culet_parked_unit(parked);
    struct culet_slab *slab = culet_entry_slab(culet_pagemap_entry(parked.block));
    unsigned number = (unsigned)(unit - slab->unit);
    uint64_t bit = culet_parked_bit(parked), live;

    if (owner) {
        live = atomic_load_explicit(&unit->live, memory_order_relaxed);
        atomic_store_explicit(&unit->parked, atomic_load_explicit(&unit->parked, memory_order_relaxed) & ~bit,
                              memory_order_relaxed);
        atomic_store_explicit(&unit->live, live & ~bit, memory_order_relaxed);
    } else {
        atomic_fetch_and_explicit(&unit->parked, ~bit, memory_order_acq_rel);
        live = atomic_fetch_and_explicit(&unit->live, ~bit, memory_order_acq_rel);
    }
    if (live == culet_class_full(&culet_classes[klass], number) || live == bit)
        culet_bin_note(klass, slab, number, owner);
}

void culet_park_empty(struct culet_park *park, unsigned klass, bool owner)
{
    uint64_t count;

    while ((count = culet_park_count(park))) {
        struct culet_parked last = park->block[count - 1];
        atomic_store_explicit(&park->count, count - 1, memory_order_relaxed);
        put_back(last, klass, owner);
    }
}
