/* pagemap.h - from any address to its span, exactly.
 *
 * Two levels over the user half of the address space, one entry per page:
 *     0                  never part of the heap
 *     a slab             all that a free needs to find the block's bits, so that it waits for one load after this one:
 *                        bit 1 set, 2 to 7 the arena, 8 to 15 the size class, 16 to 20 the number of the first page,
 *                        negated, modulo 32, 22 to 63 the slab's descriptor without the low 6 bits of its address, which
 *                        are 0. In a hardened process bit 21 is set instead of bit 1, so that the fast paths do not take
 *                        it for one (harden.h)
 *     another span       bits 22 to 63 as above, the others clear: the large or huge block that begins with the page
 *     a freed record     (odd) what was freed here last, so that a second free gets a precise diagnostic; bit 1 clear
 * Of a large or huge block only the first page has a span; its other pages keep older entries. Readers take no lock.
 * Entries are written under the pages lock; those of a slab that moves to another arena, by the thread that has taken both
 * arenas. */
#pragma once

#include "types.h"

#define CULET_LEAF_SHIFT 20 /* pages per leaf: 4 GiB */
#define CULET_ADDRESS_BITS 48
#define CULET_ROOT_ENTRIES ((size_t)1 << (CULET_ADDRESS_BITS - CULET_PAGE_SHIFT - CULET_LEAF_SHIFT))

typedef _Atomic uintptr_t culet_entry;
extern _Atomic(culet_entry *) culet_pagemap_root[CULET_ROOT_ENTRIES];

/* The leaf that was made first, which most heaps need no other than: a lookup does not wait for a load of the root. */
extern struct culet_pagemap_first {
    _Atomic size_t number; /* in the root; SIZE_MAX before there is a leaf */
    _Atomic(culet_entry *) entries;
} culet_pagemap_first;

/* A freed record, decoded. */
struct culet_freed {
    bool present;
    unsigned klass;  /* of the freed slab; 0 for a large or huge block */
    uintptr_t start; /* of the first block */
    size_t pages;
};

/* The raw entry of an address. */
static inline uintptr_t culet_pagemap_entry(uintptr_t address)
{
    size_t page = address >> CULET_PAGE_SHIFT, number = page >> CULET_LEAF_SHIFT;
    const culet_entry *leaf;

    if (CULET_LIKELY(number == atomic_load_explicit(&culet_pagemap_first.number, memory_order_acquire)))
        leaf = atomic_load_explicit(&culet_pagemap_first.entries, memory_order_relaxed);
    else if (number >= CULET_ROOT_ENTRIES ||
             !(leaf = atomic_load_explicit(&culet_pagemap_root[number], memory_order_acquire)))
        return 0;
    return atomic_load_explicit(&leaf[page & (((size_t)1 << CULET_LEAF_SHIFT) - 1)], memory_order_acquire);
}

#define CULET_ENTRY_FREED 1
#define CULET_ENTRY_SLAB 2
#define CULET_ENTRY_ARENA_SHIFT 2
#define CULET_ENTRY_CLASS_SHIFT 8
#define CULET_ENTRY_PLACE_SHIFT 16
#define CULET_ENTRY_CHECKED_SLAB (1u << 21)
#define CULET_ENTRY_SPAN_ALIGNMENT 64
_Static_assert(CULET_ARENAS << CULET_ENTRY_ARENA_SHIFT <= 1 << CULET_ENTRY_CLASS_SHIFT, "an arena's number has 6 bits");
_Static_assert(CULET_CLASSES <= 256 && CULET_SLAB_PAGES <= 32, "a class has 8 bits, a page 5");

/* The low byte of the entries of an arena's slabs. */
#define CULET_ENTRY_TAG(arena) ((uint8_t)((arena) << CULET_ENTRY_ARENA_SHIFT | CULET_ENTRY_SLAB))
/* One that no entry has. */
#define CULET_ENTRY_NO_TAG (CULET_ENTRY_FREED | CULET_ENTRY_SLAB)

static inline bool culet_entry_is_slab(uintptr_t entry)
{
    return entry & CULET_ENTRY_SLAB;
}

/* A slab of a hardened process. */
static inline bool culet_entry_is_checked_slab(uintptr_t entry)
{
    return (entry & (CULET_ENTRY_CHECKED_SLAB | CULET_ENTRY_FREED)) == CULET_ENTRY_CHECKED_SLAB;
}

/* The class of a slab's entry, and the offset of an address in the slab. */
static inline unsigned culet_entry_class(uintptr_t entry)
{
    return (uint8_t)(entry >> CULET_ENTRY_CLASS_SHIFT);
}

static inline size_t culet_entry_offset(uintptr_t entry, uintptr_t address)
{
    return (address + (entry >> CULET_ENTRY_PLACE_SHIFT << CULET_PAGE_SHIFT)) & (CULET_SLAB_PAGES * CULET_PAGE - 1);
}

/* The span of an entry that is not a freed record. */
static inline struct culet_span *culet_entry_live_span(uintptr_t entry)
{
    return (struct culet_span *)(entry >> CULET_ENTRY_PLACE_SHIFT & ~(uintptr_t)(CULET_ENTRY_SPAN_ALIGNMENT - 1));
}

static inline struct culet_slab *culet_entry_slab(uintptr_t entry)
{
    return (struct culet_slab *)culet_entry_live_span(entry);
}

static inline struct culet_span *culet_entry_span(uintptr_t entry)
{
    return CULET_UNLIKELY(entry & CULET_ENTRY_FREED) ? NULL : culet_entry_live_span(entry);
}

/* The span of the page at `address`, or NULL. */
static inline struct culet_span *culet_pagemap_span(uintptr_t address)
{
    return culet_entry_span(culet_pagemap_entry(address));
}

/* The entry of a slab's pages, as its descriptor describes it. */
uintptr_t culet_entry_of(const struct culet_slab *slab);

/* Makes sure that entries for the range exist. False when the kernel refuses the memory for them. */
bool culet_pagemap_prepare(uintptr_t start, size_t pages);

/* Sets the entries of a prepared range: all pages of a slab, or one page of another block. */
void culet_pagemap_set_slab(const struct culet_slab *slab, size_t pages);
void culet_pagemap_set_block(uintptr_t start, struct culet_span *span);

/* Sets freed records. Class 0 for a large block. */
void culet_pagemap_set_freed(uintptr_t start, size_t pages, unsigned klass);

/* Sets the freed records of a huge block of so many pages, of which only the first one has an entry. */
void culet_pagemap_set_freed_huge(uintptr_t start, size_t pages);

/* Clears a range whose address space goes back to the kernel. */
void culet_pagemap_clear(uintptr_t start, size_t pages);

struct culet_freed culet_pagemap_freed(uintptr_t address);
