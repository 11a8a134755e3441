/* pagemap.h - from an address to what owns it, exactly, for any pointer at all.
 *
 * Two levels over the user's half of the address space, one entry per page. An entry is
 *     0                  never ours
 *     an span           (even) the descriptor of the slab that owns the page, or of the run or huge block that
 *                        begins here; for a slab also its class and the page's place in it, so that a free
 *                        need not look at the descriptor for them: descriptors have addresses of 48 bits
 *     a freed_record       (odd) of what was freed here last: so that a second free can be named; to
 *                        culet_entry_class it is of no class
 * Readers take no lock. Entries are written under the pages lock. */
#ifndef CULET_PAGEMAP_H
#define CULET_PAGEMAP_H

#include "types.h"

#define CULET_LEAF_SHIFT 16 /* pages per leaf: 256 MiB */
#define CULET_ADDRESS_BITS 48
#define CULET_ROOT_ENTRIES ((size_t)1 << (CULET_ADDRESS_BITS - CULET_PAGE_SHIFT - CULET_LEAF_SHIFT))

typedef _Atomic uintptr_t culet_entry;
extern _Atomic(culet_entry *) culet_pagemap_root[CULET_ROOT_ENTRIES];

/* What a freed_record tells. */
struct culet_freed {
    bool present;
    unsigned klass;  /* of the slab that was here, or 0 for a block of its own */
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

/* The class of the slab that an entry leads to; 0 if it leads to none. */
static inline unsigned culet_entry_class(uintptr_t entry)
{
    return (unsigned)(entry >> CULET_ENTRY_CLASS_SHIFT);
}

static inline struct culet_span *culet_entry_span(uintptr_t entry)
{
    return CULET_UNLIKELY(entry & 1) ? NULL : (struct culet_span *)(entry & ((UINT64_C(1) << CULET_ADDRESS_BITS) - 1));
}

/* How far into its slab the address lies. */
static inline uint32_t culet_entry_offset(uintptr_t entry, uintptr_t address)
{
    uint32_t place = (uint32_t)(entry >> CULET_ENTRY_PAGE_SHIFT) & 15;
    return place << CULET_PAGE_SHIFT | (uint32_t)(address & (CULET_PAGE - 1));
}

/* The descriptor that an entry with a class leads to. */
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

/* Enters an span for every page of a prepared range: all of a slab's, the first of another block. klass: of the
 * slab, 0 for other blocks. */
void culet_pagemap_set(uintptr_t start, size_t pages, struct culet_span *span, unsigned klass);

/* Puts a freed_record on a range: what was freed there. klass 0 for a block of its own. */
void culet_pagemap_set_freed(uintptr_t start, size_t pages, unsigned klass);

/* The same for a huge block, of which only the first page has an entry. */
void culet_pagemap_set_freed_huge(uintptr_t start, size_t pages);

/* Forgets a range, when its address space goes back to the kernel. */
void culet_pagemap_clear(uintptr_t start, size_t pages);

struct culet_freed culet_pagemap_freed(uintptr_t address);

#endif
