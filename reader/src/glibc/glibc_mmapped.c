#include "glibc/glibc_heap.h"

#include "regions/region_records.h"

#include <string.h>

/* From 2.43 on the size of a mapped chunk leaves out a header at its end, and the lowest bit of its offset marks
 * huge pages. */
#define HUGE_PAGES UINT64_C(1)
#define END_HEADER 16u

struct mapped {
    uint64_t chunk, bytes;
    struct culet_range range; /* of the mapping */
};

/* Whether the header is that of a chunk at `at` with a mapping of its own inside `mapping`. */
static bool is_header(struct culet_reading *reading, const struct culet_mapping *mapping, uint64_t at,
                      const uint64_t header[2], struct mapped *found)
{
    uint64_t page = reading->page_bytes - 1, offset = header[0] & ~HUGE_PAGES, size = header[1] & ~GLIBC_CHUNK_FLAGS;

    if ((header[1] & GLIBC_CHUNK_FLAGS) != GLIBC_CHUNK_MMAPPED || offset > at || !size)
        return false;
    uint64_t start = at - offset, end = at + size;
    if (start & page || start < mapping->start || size > mapping->end - at)
        return false;
    if (((end + END_HEADER) & page) == 0)
        end += END_HEADER;
    if (end & page || end > mapping->end)
        return false;
    *found = (struct mapped){.chunk = at, .bytes = size, .range = {start, end}};
    return true;
}

/* Finds a chunk whose header is in the page at `address`: at its start, or 16 bytes before an alignment (memalign).
 * `sequential`: the next pages will be probed too. */
static bool probe(struct culet_reading *reading, const struct culet_mapping *mapping, uint64_t address, bool sequential,
                  struct mapped *found)
{
    size_t length, page = reading->page_bytes;
    uint64_t limit = sequential ? mapping->end : address + page;
    const unsigned char *data = culet_memory_span(&reading->memory, address, page, limit, &length);
    uint64_t header[2];

    if (!data)
        return false;
    memcpy(header, data, sizeof header);
    if (!(header[0] & ~HUGE_PAGES) && is_header(reading, mapping, address, header, found))
        return true;
    /* The part cut off must be at least the smallest chunk: alignments of 32 and 64 bytes both give 48. */
    for (size_t alignment = 64; alignment <= page; alignment *= 2) {
        uint64_t at = alignment - 16;
        memcpy(header, data + at, sizeof header);
        uint64_t offset = header[0] & ~HUGE_PAGES;
        if ((alignment == page ? offset & (page - 1) : offset) == at &&
            is_header(reading, mapping, address + at, header, found))
            return true;
    }
    return false;
}

/* From 2.42 on a tcache may hold blocks with a mapping of their own (tunable glibc.malloc.tcache_max). */
static void add_candidate(struct culet_reading *reading, struct culet_glibc *heap, const struct mapped *found,
                          const struct culet_region *region)
{
    size_t first = heap->candidates.count;
    uint64_t link;

    if (found->bytes >= CULET_GLIBC_MOST_CACHED ||
        !culet_memory_word(&reading->memory, found->chunk + GLIBC_CHUNK_HEADER_BYTES, &link) ||
        !culet_glibc_can_be_link(&heap->candidates, found->chunk, link))
        return;
    culet_glibc_candidates_add(&heap->candidates, found->chunk, found->bytes, link);
    culet_glibc_candidates_end_region(&heap->candidates, region, first);
}

static bool add(struct culet_reading *reading, struct culet_glibc *heap, const struct mapped *found)
{
    const struct culet_range *range = &found->range;
    struct culet_region *region =
        culet_reading_new_region(reading, "mmapped", CULET_NO_ARENA, range->start, range->end, true);

    if (!region)
        return false;
    culet_reading_note_states_yielding(reading, region, range->start, range->end);
    culet_region_add_block(&reading->regions, region, range->end - range->start, CULET_BLOCK_USED);
    add_candidate(reading, heap, found, region);
    heap->found_mmaps++;
    heap->found_mmapped_bytes += range->end - range->start;
    return true;
}

bool culet_glibc_mmapped_complete(const struct culet_glibc *heap)
{
    bool is_2_43 = heap->top_offset == 8; /* no fastbins */

    return heap->sbrk_field && heap->found_mmaps == heap->n_mmaps &&
           (heap->found_mmapped_bytes == heap->mmapped_bytes ||
            (is_2_43 && heap->found_mmapped_bytes < heap->mmapped_bytes));
}

/* Probes pages of one mapping: all with `thorough`, else only at the start of the mapping and after each chunk
 * found. A page cut off by memalign with a large alignment is not in memory: it is skipped. */
static void scan(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_mapping *mapping,
                 bool thorough)
{
    const unsigned shift = reading->pages.shift;
    uint64_t at = mapping->start;

    while (!culet_glibc_mmapped_complete(heap) && !reading->pages.exhausted) {
        struct mapped found;
        const struct culet_region *region = culet_regions_at(&reading->regions, at);
        if (region)
            at = (region->end + reading->page_bytes - 1) & ~(uint64_t)(reading->page_bytes - 1);
        if (culet_reading_yield(reading))
            culet_glibc_parameters_read(reading, heap);
        at = culet_pages_next(&reading->pages, at >> shift, mapping->end >> shift) << shift;
        if (at >= mapping->end)
            return;
        if (culet_regions_at(&reading->regions, at))
            continue;
        if (probe(reading, mapping, at, thorough, &found) && add(reading, heap, &found))
            at = found.range.end;
        else if (thorough || !culet_pages_at(&reading->pages, at))
            at += reading->page_bytes;
        else
            return;
    }
}

void culet_glibc_mmapped_find(struct culet_reading *reading, struct culet_glibc *heap)
{
    culet_glibc_parameters_read(reading, heap);
    for (int thorough = 0; thorough < 2; thorough++)
        for (size_t i = 0; i < reading->maps.count && !culet_glibc_mmapped_complete(heap); i++) {
            const struct culet_mapping *mapping = &reading->maps.all[i];
            if (culet_mapping_is_heap_like(mapping) && strcmp(mapping->path, "[heap]") != 0 &&
                (!reading->maps.sized || mapping->rss || mapping->swap))
                scan(reading, heap, mapping, thorough);
        }
}
