/* common/pages.h - memory of its own mapping: neither malloc nor Ruby's heap changes by it. */
#pragma once

#include <stddef.h>
#include <sys/mman.h>

/* Makes a mapping larger, or a first one of NULL. What is new is zero. Returns NULL without memory; the mapping stays. */
static inline void *culet_pages_grow(void *pages, size_t before, size_t bytes)
{
    void *grown = pages == NULL ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : mremap(pages, before, bytes, MREMAP_MAYMOVE);

    return grown == MAP_FAILED ? NULL : grown;
}

#define CULET_PAGES_FIRST ((size_t)64 << 10) /* a multiple of every page size */

/* Doubles a mapping of `*bytes` bytes, which may be 0, until it has `wanted`. Returns as culet_pages_grow. */
static inline void *culet_pages_reserve(void *pages, size_t *bytes, size_t wanted)
{
    size_t larger = *bytes == 0 ? CULET_PAGES_FIRST : *bytes;

    while (larger < wanted)
        larger *= 2;
    if (larger == *bytes)
        return pages;
    pages = culet_pages_grow(pages, *bytes, larger);
    if (pages != NULL)
        *bytes = larger;
    return pages;
}
