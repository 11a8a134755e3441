#include "pagemap.h"

#include "harden.h"
#include "os.h"

_Atomic(culet_entry *) culet_pagemap_root[CULET_ROOT_ENTRIES];
struct culet_pagemap_first culet_pagemap_first = {.number = SIZE_MAX};

#define LEAF_ENTRIES ((size_t)1 << CULET_LEAF_SHIFT)

/* A freed record: bit 0 set, bit 1 clear, 8 bits of class, 23 bits of distance from the start and 24 of length, in
 * pages. */
#define FREED_CLASS_SHIFT 2
#define FREED_DISTANCE_SHIFT 10
#define FREED_DISTANCE_MAX ((UINT64_C(1) << 23) - 1)
#define FREED_LENGTH_SHIFT 33
#define FREED_LENGTH_MAX ((UINT64_C(1) << 24) - 1)

static culet_entry *entry_at(uintptr_t address)
{
    culet_entry *leaf = atomic_load_explicit(&culet_pagemap_root[address >> (CULET_PAGE_SHIFT + CULET_LEAF_SHIFT)],
                                             memory_order_acquire);
    return &leaf[(address >> CULET_PAGE_SHIFT) & (LEAF_ENTRIES - 1)];
}

/* Writes the entries of a range: `value`, plus `step` for each page. */
static void put(uintptr_t start, size_t pages, uintptr_t value, uintptr_t step)
{
    /* A reader that sees an entry sees the span that it leads to. */
    atomic_thread_fence(memory_order_release);
    while (pages) {
        culet_entry *entry = entry_at(start);
        size_t left = LEAF_ENTRIES - ((start >> CULET_PAGE_SHIFT) & (LEAF_ENTRIES - 1));
        size_t here = pages < left ? pages : left;
        for (const culet_entry *end = entry + here; entry < end; entry++, value += step)
            atomic_store_explicit(entry, value, memory_order_relaxed);
        pages -= here;
        start += here * CULET_PAGE;
    }
}

bool culet_pagemap_prepare(uintptr_t start, size_t pages)
{
    size_t shift = CULET_PAGE_SHIFT + CULET_LEAF_SHIFT;
    uintptr_t end = start + pages * CULET_PAGE - 1;

    for (size_t i = start >> shift; i <= end >> shift; i++) {
        if (i >= CULET_ROOT_ENTRIES)
            return false;
        if (atomic_load_explicit(&culet_pagemap_root[i], memory_order_relaxed))
            continue;
        culet_entry *leaf = culet_os_map(LEAF_ENTRIES * sizeof *leaf);
        if (!leaf)
            return false;
        atomic_store_explicit(&culet_pagemap_root[i], leaf, memory_order_release);
        if (culet_pagemap_first.entries)
            continue;
        atomic_store_explicit(&culet_pagemap_first.entries, leaf, memory_order_relaxed);
        atomic_store_explicit(&culet_pagemap_first.number, i, memory_order_release);
    }
    return true;
}

/* The bits of an entry that lead to a span. */
static uintptr_t to_span(const struct culet_span *span)
{
    return (uintptr_t)span << CULET_ENTRY_PLACE_SHIFT;
}

uintptr_t culet_entry_of(const struct culet_slab *slab)
{
    unsigned arena = atomic_load_explicit(&slab->span.arena, memory_order_relaxed);
    uintptr_t klass = atomic_load_explicit(&slab->span.klass, memory_order_relaxed);
    uintptr_t place = -(slab->span.start >> CULET_PAGE_SHIFT) % CULET_SLAB_PAGES;

    return to_span(&slab->span) | place << CULET_ENTRY_PLACE_SHIFT | klass << CULET_ENTRY_CLASS_SHIFT |
           (culet_harden_level ? CULET_ENTRY_CHECKED_SLAB : CULET_ENTRY_TAG(arena));
}

void culet_pagemap_set_slab(const struct culet_slab *slab, size_t pages)
{
    put(slab->span.start, pages, culet_entry_of(slab), 0);
}

void culet_pagemap_set_block(uintptr_t start, struct culet_span *span)
{
    put(start, 1, to_span(span), 0);
}

static uintptr_t freed_record(unsigned klass, size_t length)
{
    if (length > FREED_LENGTH_MAX)
        length = FREED_LENGTH_MAX;
    return CULET_ENTRY_FREED | (uintptr_t)klass << FREED_CLASS_SHIFT | length << FREED_LENGTH_SHIFT;
}

void culet_pagemap_set_freed(uintptr_t start, size_t pages, unsigned klass)
{
    put(start, pages, freed_record(klass, pages), UINT64_C(1) << FREED_DISTANCE_SHIFT);
}

void culet_pagemap_set_freed_huge(uintptr_t start, size_t pages)
{
    put(start, 1, freed_record(0, pages), 0);
}

void culet_pagemap_clear(uintptr_t start, size_t pages)
{
    put(start, pages, 0, 0);
}

struct culet_freed culet_pagemap_freed(uintptr_t address)
{
    uintptr_t entry = culet_pagemap_entry(address);
    struct culet_freed freed = {.present = (entry & CULET_ENTRY_FREED) != 0};

    if (freed.present) {
        freed.klass = (entry >> FREED_CLASS_SHIFT) & 0xff;
        size_t distance = (entry >> FREED_DISTANCE_SHIFT) & FREED_DISTANCE_MAX;
        freed.start = (address & ~(CULET_PAGE - 1)) - distance * CULET_PAGE;
        freed.pages = (entry >> FREED_LENGTH_SHIFT) & FREED_LENGTH_MAX;
    }
    return freed;
}
