/* comparison/heap_page.h - the pages of Ruby's heap in another process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "reader/src/base/search.h"
#include "reader/layouts/ruby_slot.h"

/* A heap page, as packed by Culet::Cow::Comparison. */
struct comparison_heap_page {
    uint64_t address, slot_bytes, first_slot, slots; /* first_slot: offset in the page */
};

/* The page that contains an address, of `count` pages in address order; NULL if there is none. */
static inline const struct comparison_heap_page *culet_heap_page_at(const struct comparison_heap_page *pages,
                                                                    size_t count, uint64_t page_bytes, uint64_t address)
{
    size_t next = CULET_FIRST_WHERE(i, 0, count, pages[i].address > address);

    return next > 0 && address - pages[next - 1].address < page_bytes ? &pages[next - 1] : NULL;
}
