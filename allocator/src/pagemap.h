/* pagemap.h - from any address to its span, exactly.
 *
 * Two levels over the user half of the address space, one entry per page:
 *     0                  never part of the heap
 *     a slab             with bit 1 set: the slab that holds the page; in a hardened process with bit 2 instead, so that
 *                        the fast paths do not take it for one (harden.h)
 *     another span       with bits 0 to 2 clear: the large or huge block that begins with the page
 *     a freed record     (odd) what was freed here last, so that a second free gets a precise diagnostic; bit 1 clear
 * Of a large or huge block only the first page has a span; its other pages keep older entries. Readers take no lock.
 * Entries are written under the pages lock. */
#ifndef CULET_PAGEMAP_H
#define CULET_PAGEMAP_H

#include "types.h"

#define CULET_LEAF_SHIFT 16 /* pages per leaf: 256 MiB */
#define CULET_ADDRESS_BITS 48
#define CULET_ROOT_ENTRIES ((size_t)1 << (CULET_ADDRESS_BITS - CULET_PAGE_SHIFT - CULET_LEAF_SHIFT))

typedef _Atomic uintptr_t culet_entry;
extern _Atomic(culet_entry *) culet_pagemap_root[CULET_ROOT_ENTRIES];

/* A freed record, decoded. */
struct culet_freed {
    bool present;
    unsigned klass;  /* of the freed slab; 0 for a large or huge block */
    uintptr_t start; /* of the first block */
    size_t pages;
};

/* The raw entry for an address. */
static inline uintptr_t culet_pagemap_entry(uintptr_t address)
{
    size_t root = address >> (CULET_PAGE_SHIFT + CULET_LEAF_SHIFT);
    if (CULET_UNLIKELY(root >= CULET_ROOT_ENTRIES))
        return 0;

    culet_entry *leaf = atomic_load_explicit(&culet_pagemap_root[root], memory_order_acquire);
    if (CULET_UNLIKELY(!leaf))
        return 0;
    size_t index = (address >> CULET_PAGE_SHIFT) & (((size_t)1 << CULET_LEAF_SHIFT) - 1);
    return atomic_load_explicit(&leaf[index], memory_order_acquire);
}

#define CULET_ENTRY_FREED 1
#define CULET_ENTRY_SLAB 2
#define CULET_ENTRY_CHECKED_SLAB 4
#define CULET_ENTRY_MARKS ((uintptr_t)(CULET_ENTRY_SLAB | CULET_ENTRY_CHECKED_SLAB))

static inline bool culet_entry_is_slab(uintptr_t entry)
{
    return entry & CULET_ENTRY_SLAB;
}

/* A slab of a hardened process. */
static inline bool culet_entry_is_checked_slab(uintptr_t entry)
{
    return (entry & (CULET_ENTRY_CHECKED_SLAB | CULET_ENTRY_FREED)) == CULET_ENTRY_CHECKED_SLAB;
}

/* The slab of an entry that is one. */
static inline struct culet_slab *culet_entry_slab(uintptr_t entry)
{
    return (struct culet_slab *)(entry - CULET_ENTRY_SLAB);
}

static inline struct culet_span *culet_entry_span(uintptr_t entry)
{
    return CULET_UNLIKELY(entry & CULET_ENTRY_FREED) ? NULL : (struct culet_span *)(entry & ~CULET_ENTRY_MARKS);
}

/* The span of the page at `address`, or NULL. */
static inline struct culet_span *culet_pagemap_span(uintptr_t address)
{
    return culet_entry_span(culet_pagemap_entry(address));
}

/* Makes sure that entries for the range exist. False when the kernel refuses the memory for them. */
bool culet_pagemap_prepare(uintptr_t start, size_t pages);

/* Sets the entries of a prepared range: all pages of a slab, or one page of another block. */
void culet_pagemap_set_slab(uintptr_t start, size_t pages, struct culet_slab *slab);
void culet_pagemap_set_block(uintptr_t start, struct culet_span *span);

/* Sets freed records. Class 0 for a large block. */
void culet_pagemap_set_freed(uintptr_t start, size_t pages, unsigned klass);

/* Sets the freed records of a huge block of so many pages, of which only the first one has an entry. */
void culet_pagemap_set_freed_huge(uintptr_t start, size_t pages);

/* Clears a range whose address space goes back to the kernel. */
void culet_pagemap_clear(uintptr_t start, size_t pages);

struct culet_freed culet_pagemap_freed(uintptr_t address);

#endif
