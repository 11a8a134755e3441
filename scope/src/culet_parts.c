/* All of culet's heap that lies outside of segments: lists, which are read in the first slice, and the regions that they
 * name, which are made in as many slices as it takes. */
#include "culet_heap.h"
#include "lap.h"

#include <stdlib.h>

/* Of a list so many are followed without a look at the clock. */
#define AT_ONCE 256u

enum part_kind { PART_HUGE, PART_ENDING, PART_KEPT, PART_METADATA };

/* What a list of the heap's names: a region to be made. */
struct part {
    uint64_t start, end;
    enum part_kind kind;
};

static struct {
    struct part *all;
    size_t count, room;
    size_t made; /* regions of so many of them */
} parts;

static void note_part(uint64_t start, uint64_t bytes, enum part_kind kind)
{
    parts.all = culet_grow(parts.all, &parts.room, parts.count + 1, sizeof *parts.all);
    parts.all[parts.count++] = (struct part){.start = start, .end = start + bytes, .kind = kind};
}

/* Once the process has run, a list may go on elsewhere: what is not one of its kind ends it. */
static void list_huge(struct culet_scope *scope, struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    struct culet_lap lap = {0};
    uint64_t at = 0;

    culet_memory_word(&scope->memory, self->huge, &at);
    for (size_t i = 1; at; i++) {
        const unsigned char *descriptor = culet_memory_at(&scope->memory, at, self->large.bytes);
        if (!descriptor || descriptor[self->owner.kind] != self->kind_huge || culet_lap_closes(&lap, at)) {
            heap->strange++;
            return;
        }
        note_part(culet_heap_word(descriptor + self->owner.start), culet_heap_word(descriptor + self->large.length),
                  descriptor[self->large.ending] ? PART_ENDING : PART_HUGE);
        at = culet_heap_word(descriptor + self->large.next);
        if (i % AT_ONCE == 0)
            culet_heap_breathe(scope, heap);
    }
}

static void list_kept(struct culet_scope *scope, const struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    uint32_t count = 0;

    culet_memory_copy(&scope->memory, self->extent_count, &count, sizeof count);
    for (uint32_t i = 0; i < count && i < self->extent_entries; i++) {
        const unsigned char *extent = culet_memory_at(&scope->memory, self->extents + (uint64_t)i * self->extent.bytes,
                                                      self->extent.bytes);
        if (!extent)
            return;
        note_part(culet_heap_word(extent + self->extent.start), culet_heap_word(extent + self->extent.length), PART_KEPT);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return first < second ? -1 : first > second;
}

/* Descriptors: chunks that lie side by side make one region. */
static void list_chunks(struct culet_scope *scope, struct culet_heap *heap)
{
    uint64_t *chunks = NULL, at = 0, bytes = heap->self.chunk_bytes;
    size_t count = 0, room = 0;
    struct culet_lap lap = {0};

    culet_memory_word(&scope->memory, heap->self.chunks, &at);
    while (at && !culet_lap_closes(&lap, at)) {
        chunks = culet_grow(chunks, &room, count + 1, sizeof *chunks);
        chunks[count++] = at;
        if (!culet_memory_word(&scope->memory, at + heap->self.chunk.next, &at))
            at = 0;
        if (count % AT_ONCE == 0)
            culet_heap_breathe(scope, heap);
    }
    heap->strange += at != 0;
    if (count)
        qsort(chunks, count, sizeof *chunks, compare);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && chunks[next] == chunks[next - 1] + bytes;)
            next++;
        note_part(chunks[i], (next - i) * bytes, PART_METADATA);
    }
    free(chunks);
}

/* The leaves of the pagemap. Of the root's pages few are in memory. */
static void list_leaves(struct culet_scope *scope, struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    uint64_t leaf;

    for (uint32_t i = 0; i < self->root_entries && !scope->pages.spent; i++) {
        uint64_t at = self->root + 8 * (uint64_t)i;
        if (!culet_memory_word(&scope->memory, at, &leaf)) {
            i += (uint32_t)((scope->page_bytes - 1 - (at & (scope->page_bytes - 1))) / 8);
            culet_heap_breathe(scope, heap);
        } else if (leaf) {
            note_part(leaf, 8 * (uint64_t)self->leaf_entries, PART_METADATA);
        }
        if (i % AT_ONCE == 0)
            culet_heap_breathe(scope, heap);
    }
}

/* The tables in the library's own zero-initialised data. Its first page may be the file's; and one in its middle may be a
 * mapping of its own, which forked children do not get. */
static void list_bss(struct culet_scope *scope, const struct culet_heap *heap)
{
    uint64_t page = scope->page_bytes, start = (heap->self.bss + page - 1) & ~(page - 1);
    uint64_t end = (heap->self.bss_end + page - 1) & ~(page - 1);
    struct culet_mapping *mapping;

    for (; start < end && (mapping = culet_maps_at(&scope->maps, start)) && !mapping->inode; start = mapping->end) {
        culet_mapping_name(mapping, "allocator", "culet's tables");
        note_part(start, (end < mapping->end ? end : mapping->end) - start, PART_METADATA);
    }
}

/* A freed huge block counts as one until it is unmapped, in the allocator's own figures too. */
static void count_part(const struct culet_scope *scope, struct culet_heap *heap, const struct part *part,
                       const struct culet_place *place)
{
    uint64_t bytes = part->end - part->start;

    switch (part->kind) {
    case PART_HUGE:
        culet_sizes_used(&heap->sizes, bytes, 1);
        heap->huge_bytes += bytes;
        heap->huge_blocks++;
        break;
    case PART_ENDING:
        culet_sizes_free(&heap->sizes, bytes, 1);
        heap->huge_bytes += bytes;
        heap->huge_blocks++;
        break;
    case PART_KEPT:
        heap->kept_bytes += bytes;
        heap->trim_bytes += culet_place_resident(&scope->places, place);
        break;
    case PART_METADATA:
        break;
    }
}

static void make_part(struct culet_scope *scope, struct culet_heap *heap, const struct part *part)
{
    bool whole = part->kind == PART_HUGE || part->kind == PART_METADATA;
    struct culet_place *place = culet_heap_place(scope, heap, part->kind == PART_METADATA ? "metadata" : "large", part->start, part->end,
                                          whole);

    if (!place) {
        heap->strange++;
        return;
    }
    if (part->kind != PART_METADATA)
        culet_heap_chunk(scope, place, part->end - part->start, whole ? CULET_BLOCK_USED : CULET_BLOCK_FREE);
    count_part(scope, heap, part, place);
}

void culet_parts_list(struct culet_scope *scope, struct culet_heap *heap)
{
    list_bss(scope, heap);
    list_leaves(scope, heap);
    list_chunks(scope, heap);
    list_huge(scope, heap);
    list_kept(scope, heap);
}

bool culet_parts_next(struct culet_scope *scope, struct culet_heap *heap)
{
    if (parts.made == parts.count)
        return false;
    make_part(scope, heap, &parts.all[parts.made++]);
    return true;
}
