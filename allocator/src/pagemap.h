/* pagemap.h - from any address to its span, exactly.
 *
 * Two levels over the user half of the address space, one entry per page:
 *     0                  never part of the heap
 *     a span (even)      the slab that holds the page, or the large or huge block that begins with it. For a slab also
 *                        its class and the page's number in the slab, so that a free does not read the span for them
 *     a freed record     (odd) what was freed here last, so that a second free gets a precise diagnostic; class 0
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

#define CULET_ENTRY_CLASS_SHIFT 56
#define CULET_ENTRY_PAGE_SHIFT 52

/* The class of the entry's slab; 0 for any other entry. */
static inline unsigned culet_entry_class(uintptr_t entry)
{
    return (unsigned)(entry >> CULET_ENTRY_CLASS_SHIFT);
}

static inline struct culet_span *culet_entry_span(uintptr_t entry)
{
    return CULET_UNLIKELY(entry & 1) ? NULL : (struct culet_span *)(entry & ((UINT64_C(1) << CULET_ADDRESS_BITS) - 1));
}

/* The offset of an address in the entry's slab. */
static inline uint32_t culet_entry_offset(uintptr_t entry, uintptr_t address)
{
    uint32_t page = (uint32_t)(entry >> CULET_ENTRY_PAGE_SHIFT) & 15;
    return page << CULET_PAGE_SHIFT | (uint32_t)(address & (CULET_PAGE - 1));
}

/* The slab of an entry with a class. */
static inline struct culet_slab *culet_entry_slab(uintptr_t entry)
{
    return (struct culet_slab *)(entry & ((UINT64_C(1) << CULET_ADDRESS_BITS) - 1));
}

/* The span of the page at `address`, or NULL. */
static inline struct culet_span *culet_pagemap_span(uintptr_t address)
{
    return culet_entry_span(culet_pagemap_entry(address));
}

/* Makes sure that entries for the range exist. False when the kernel refuses the memory for them. */
bool culet_pagemap_prepare(uintptr_t start, size_t pages);

/* Sets the entries of a prepared range: all pages of a slab, or one page of another block, with class 0. */
void culet_pagemap_set(uintptr_t start, size_t pages, struct culet_span *span, unsigned klass);

/* Sets freed records. Class 0 for a large block. */
void culet_pagemap_set_freed(uintptr_t start, size_t pages, unsigned klass);

/* The same for a huge block, of which only the first page has an entry. */
void culet_pagemap_set_freed_huge(uintptr_t start, size_t pages);

/* Clears a range whose address space goes back to the kernel. */
void culet_pagemap_clear(uintptr_t start, size_t pages);

struct culet_freed culet_pagemap_freed(uintptr_t address);

#endif
