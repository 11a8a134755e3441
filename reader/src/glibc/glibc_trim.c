#include "glibc/glibc_heap.h"

/* systrim keeps a chunk of the least size, and a byte, in main's top. */
#define TOP_KEEPS (GLIBC_CHUNK_LEAST_BYTES + 1)

/* Resident bytes of the whole pages in from..to. */
static uint64_t whole_pages(const struct culet_region *region, uint64_t from, uint64_t to)
{
    uint64_t page = UINT64_C(1) << region->shift;

    return culet_region_bytes_in_state(region, (from + page - 1) & ~(page - 1), to & ~(page - 1), CULET_PAGE_PRESENT);
}

/* Algorithm: mtrim and systrim of glibc's malloc/malloc.c. A binned chunk keeps its header and links. Main's top is
 * trimmed from its end; the tops of other arenas stay. */
uint64_t culet_glibc_trim_bytes(const struct culet_region *region, uint64_t from, uint64_t to, enum culet_glibc_end end)
{
    uint64_t page = UINT64_C(1) << region->shift;

    if (end == CULET_GLIBC_TOP || to <= from)
        return 0;
    if (end == CULET_GLIBC_CHUNK)
        return whole_pages(region, from + GLIBC_CHUNK_STRUCT_BYTES, to);
    if (to - from <= TOP_KEEPS)
        return 0;
    return whole_pages(region, to - ((to - from - TOP_KEEPS) & ~(page - 1)), to);
}
