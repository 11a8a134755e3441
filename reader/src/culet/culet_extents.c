#include "culet/culet_heap.h"

#include "base/bytes.h"
#include "base/cycle.h"

#include <stdlib.h>

/* List elements between two looks at the clock. */
#define PER_CHECK 256u

static void add_extent(struct culet_heap *heap, uint64_t start, uint64_t bytes, enum culet_extent_kind kind)
{
    CULET_APPEND(heap->extents, heap->extent_count, heap->extent_room) =
        (struct culet_extent){.start = start, .end = start + bytes, .kind = kind};
}

/* A list may have changed since the last slice: it ends at the first element of another kind. */
static void list_huge(struct culet_reading *reading, struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    struct culet_cycle cycle = {0};
    uint64_t at = 0;

    culet_memory_word(&reading->memory, self->huge, &at);
    for (size_t i = 1; at; i++) {
        const unsigned char *huge = culet_memory_at(&reading->memory, at, self->large.bytes);
        if (!huge || huge[self->span.kind] != self->kind_huge || culet_cycle_closes(&cycle, at)) {
            heap->inconsistent++;
            return;
        }
        add_extent(heap, culet_word_at(huge + self->span.start), culet_word_at(huge + self->large.length),
                   huge[self->large.ending] ? CULET_EXTENT_FREED_HUGE : CULET_EXTENT_HUGE);
        at = culet_word_at(huge + self->large.next);
        if (i % PER_CHECK == 0)
            culet_heap_yield(reading, heap);
    }
}

static void list_kept(struct culet_reading *reading, struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    uint32_t count = 0;

    culet_memory_copy(&reading->memory, self->extent_count, &count, sizeof count);
    for (uint32_t i = 0; i < count && i < self->extent_entries; i++) {
        const unsigned char *extent =
            culet_memory_at(&reading->memory, self->extents + (uint64_t)i * self->extent.bytes, self->extent.bytes);
        if (!extent)
            return;
        add_extent(heap, culet_word_at(extent + self->extent.start), culet_word_at(extent + self->extent.length),
                   CULET_EXTENT_KEPT);
    }
}

/* Chunks of descriptors; adjacent chunks become one region. */
static void list_descriptors(struct culet_reading *reading, struct culet_heap *heap)
{
    uint64_t *chunks = NULL, at = 0, bytes = heap->self.chunk_bytes;
    size_t count = 0, room = 0;
    struct culet_cycle cycle = {0};

    culet_memory_word(&reading->memory, heap->self.chunks, &at);
    while (at && !culet_cycle_closes(&cycle, at)) {
        CULET_APPEND(chunks, count, room) = at;
        if (!culet_memory_word(&reading->memory, at + heap->self.chunk.next, &at))
            at = 0;
        if (count % PER_CHECK == 0)
            culet_heap_yield(reading, heap);
    }
    heap->inconsistent += at != 0;
    if (count)
        qsort(chunks, count, sizeof *chunks, culet_by_word);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && chunks[next] == chunks[next - 1] + bytes;)
            next++;
        add_extent(heap, chunks[i], (next - i) * bytes, CULET_EXTENT_METADATA);
    }
    free(chunks);
}

/* The leaves of the pagemap. Few pages of its root are in memory. */
static void list_pagemap(struct culet_reading *reading, struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    uint64_t leaf;

    for (uint32_t i = 0; i < self->root_entries && !reading->pages.exhausted; i++) {
        uint64_t at = self->root + 8 * (uint64_t)i;
        if (!culet_memory_word(&reading->memory, at, &leaf)) {
            i += (uint32_t)((reading->page_bytes - 1 - (at & (reading->page_bytes - 1))) / 8);
            culet_heap_yield(reading, heap);
        } else if (leaf) {
            add_extent(heap, leaf, 8 * (uint64_t)self->leaf_entries, CULET_EXTENT_METADATA);
        }
        if (i % PER_CHECK == 0)
            culet_heap_yield(reading, heap);
    }
}

/* The tables in the library's zero-initialised data. Its first page may belong to the file's mapping, and a page in the
 * middle may be a mapping of its own, because forked children do not get it. */
static void list_tables(struct culet_reading *reading, struct culet_heap *heap)
{
    uint64_t page = reading->page_bytes, start = (heap->self.bss + page - 1) & ~(page - 1);
    uint64_t end = (heap->self.bss_end + page - 1) & ~(page - 1);
    struct culet_mapping *mapping;

    for (; start < end && (mapping = culet_maps_at(&reading->maps, start)) && !mapping->inode; start = mapping->end) {
        culet_mapping_name(mapping, "allocator", "culet's tables");
        add_extent(heap, start, (end < mapping->end ? end : mapping->end) - start, CULET_EXTENT_METADATA);
    }
}

void culet_extents_list(struct culet_reading *reading, struct culet_heap *heap)
{
    list_tables(reading, heap);
    list_pagemap(reading, heap);
    list_descriptors(reading, heap);
    list_huge(reading, heap);
    list_kept(reading, heap);
}

/* A freed huge block counts as huge until it is unmapped, as in the allocator's own figures. */
static void count_extent(struct culet_heap *heap, const struct culet_extent *extent, const struct culet_region *region)
{
    uint64_t bytes = extent->end - extent->start;
    bool is_used = extent->kind == CULET_EXTENT_HUGE;

    if (extent->kind == CULET_EXTENT_METADATA)
        return;
    if (extent->kind == CULET_EXTENT_KEPT) {
        heap->kept_bytes += bytes;
        heap->trim_bytes += culet_region_bytes_in_state(region, extent->start, extent->end, CULET_PAGE_PRESENT);
        return;
    }
    culet_histogram_add(&heap->sizes, is_used ? CULET_BLOCK_USED : CULET_BLOCK_FREE, bytes, 1);
    heap->huge_bytes += bytes;
    heap->huge_blocks++;
}

bool culet_extents_next(struct culet_reading *reading, struct culet_heap *heap)
{
    if (heap->extents_done == heap->extent_count)
        return false;
    const struct culet_extent *extent = &heap->extents[heap->extents_done++];
    bool is_metadata = extent->kind == CULET_EXTENT_METADATA, full = is_metadata || extent->kind == CULET_EXTENT_HUGE;
    struct culet_region *region =
        culet_heap_new_region(reading, heap, is_metadata ? "metadata" : "large", extent->start, extent->end, full);
    if (!region) {
        heap->inconsistent++;
        return true;
    }
    if (!is_metadata)
        culet_heap_add_block(reading, region, extent->end - extent->start, full ? CULET_BLOCK_USED : CULET_BLOCK_FREE);
    count_extent(heap, extent, region);
    return true;
}
