#define _GNU_SOURCE
#include "glibc.h"

#include "../format.h"

#include <string.h>

/* 2.43: the size of such a chunk does not count a header's bytes at its end; and the lowest bit of its offset tells
 * huge pages. */
#define HUGE_PAGES UINT64_C(1)
#define END_HEADER 16u

/* Whether the chunk at `at` is one with a mapping of its own inside of `mapping`, its offset in the first word. */
static bool holds(struct culet_scope *scope, const struct culet_mapping *mapping, uint64_t at,
                  const uint64_t header[2], struct culet_range *range)
{
    uint64_t page = scope->page_bytes - 1, offset = header[0] & ~HUGE_PAGES, size = header[1] & ~GLIBC_CHUNK_FLAGS;

    if ((header[1] & GLIBC_CHUNK_FLAGS) != GLIBC_CHUNK_MMAPPED || offset > at || !size)
        return false;
    uint64_t start = at - offset, end = at + size;
    if (start & page || start < mapping->start || size > mapping->end - at)
        return false;
    if (((end + END_HEADER) & page) == 0)
        end += END_HEADER;
    if (end & page || end > mapping->end)
        return false;
    *range = (struct culet_range){start, end};
    return true;
}

/* A chunk whose header is in the page at `address`: at its start, or where an aligned block's is, 16 bytes before the
 * alignment (memalign). `further`: the pages behind it are wanted next. */
static bool probe(struct culet_scope *scope, const struct culet_mapping *mapping, uint64_t address, bool further,
                  struct culet_range *range)
{
    size_t length;
    uint64_t limit = further ? mapping->end : address + scope->page_bytes;
    const unsigned char *data = culet_memory_span(&scope->memory, address, scope->page_bytes, limit, &length);
    uint64_t header[2];

    if (!data)
        return false;
    memcpy(header, data, sizeof header);
    if (!(header[0] & ~HUGE_PAGES) && holds(scope, mapping, address, header, range))
        return true;
    /* Alignments below a page. What is cut off must be a chunk's least size: 32 and 64 bytes are both at 48. */
    for (uint64_t alignment = 64; alignment <= scope->page_bytes; alignment *= 2) {
        uint64_t at = alignment - 16;
        memcpy(header, data + at, sizeof header);
        bool page_or_more = alignment == scope->page_bytes;
        if ((page_or_more ? (header[0] & (scope->page_bytes - 1) & ~HUGE_PAGES) == at : (header[0] & ~HUGE_PAGES) == at) &&
            holds(scope, mapping, address + at, header, range))
            return true;
    }
    return false;
}

static bool found(struct culet_scope *scope, struct culet_glibc *heap, const struct culet_range *range)
{
    struct culet_place *place = culet_scope_place(scope, "mmapped", CULET_NO_ARENA, range->start, range->end, true);

    if (!place)
        return false;
    culet_scope_states_slowly(scope, place, range->start, range->end);
    culet_place_chunk(&scope->places, place, range->end - range->start, CULET_BLOCK_USED);
    heap->found_mmaps++;
    heap->found_mmapped_bytes += range->end - range->start;
    return true;
}

bool culet_glibc_mmapped_complete(const struct culet_glibc *heap)
{
    bool no_fastbins = heap->top_at == 8; /* as in 2.43 */

    return heap->sbrk_field && heap->found_mmaps == heap->n_mmaps &&
           (heap->found_mmapped_bytes == heap->mmapped_bytes ||
            (no_fastbins && heap->found_mmapped_bytes < heap->mmapped_bytes));
}

/* Looks at pages of one mapping: with `thorough` at each, else only where the mapping and each found chunk begins. A
 * page that has only been cut off (memalign with a large alignment) is not in memory: it is passed over. */
static void scan(struct culet_scope *scope, struct culet_glibc *heap, const struct culet_mapping *mapping,
                 bool thorough)
{
    const unsigned shift = scope->pages.shift;
    uint64_t at = mapping->start;

    while (!culet_glibc_mmapped_complete(heap) && !scope->pages.spent) {
        struct culet_range range;
        const struct culet_place *place = culet_places_at(&scope->places, at);
        if (place)
            at = (place->end + scope->page_bytes - 1) & ~(uint64_t)(scope->page_bytes - 1);
        if (culet_scope_breathe(scope))
            culet_glibc_parameters(scope, heap);
        at = culet_pages_next(&scope->pages, at >> shift, mapping->end >> shift) << shift;
        if (at >= mapping->end)
            return;
        if (culet_places_at(&scope->places, at))
            continue;
        if (probe(scope, mapping, at, thorough, &range) && found(scope, heap, &range))
            at = range.end;
        else if (thorough || !culet_pages_at(&scope->pages, at))
            at += scope->page_bytes;
        else
            return;
    }
}

void culet_glibc_find_mmapped(struct culet_scope *scope, struct culet_glibc *heap)
{
    culet_glibc_parameters(scope, heap);
    for (int thorough = 0; thorough < 2; thorough++)
        for (size_t i = 0; i < scope->maps.count && !culet_glibc_mmapped_complete(heap); i++) {
            const struct culet_mapping *mapping = &scope->maps.all[i];
            if (culet_mapping_is_heap_like(mapping) && strcmp(mapping->path, "[heap]") != 0 &&
                (!scope->maps.sized || mapping->rss || mapping->swap))
                scan(scope, heap, mapping, thorough);
        }
}
