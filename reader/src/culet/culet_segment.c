#include "culet/culet_heap.h"

#include "base/bytes.h"
#include "culet/culet_slab.h"
#include "regions/region_records.h"

#include <string.h>

/* Descriptors copied at once: those of most segments. */
#define BATCH CULET_MEMORY_BATCH

static void prepare_buffers(struct culet_heap *heap, size_t descriptor_bytes)
{
    struct culet_segment_buffers *buffers = &heap->buffers;
    size_t pages = heap->self.segment_pages;

    if (buffers->items)
        return;
    buffers->items = culet_new(pages, sizeof *buffers->items);
    buffers->entries = culet_new(pages, sizeof *buffers->entries);
    buffers->addresses = culet_new(BATCH, sizeof *buffers->addresses);
    buffers->descriptors = culet_new(2 * BATCH, descriptor_bytes);
    buffers->got = culet_new(2 * BATCH, sizeof *buffers->got);
}

/* ---- the pagemap's entries ---- */

/* Reads the entries of `count` pages from `address` on. */
static void read_entries(struct culet_reading *reading, const struct culet_heap *heap, uint64_t address, uint32_t count,
                         uint64_t *entries)
{
    const struct culet_selfmap *self = &heap->self;
    uint64_t page = address / self->page_bytes;

    while (count) {
        uint64_t leaf = 0, root = page / self->leaf_entries, at = page % self->leaf_entries;
        uint32_t here = self->leaf_entries - (uint32_t)at < count ? self->leaf_entries - (uint32_t)at : count;
        memset(entries, 0, here * sizeof *entries);
        if (root < self->root_entries && culet_memory_word(&reading->memory, self->root + 8 * root, &leaf) && leaf &&
            !culet_memory_copy(&reading->memory, leaf + 8 * at, entries, here * sizeof *entries))
            culet_reading_problem(reading, "Some of culet's metadata in the process is in swap: blocks may be "
                                           "missing.");
        entries += here;
        page += here;
        count -= here;
    }
}

/* Number of adjacent pages from `page` on that have its entry. */
static uint32_t pages_alike(const struct culet_heap *heap, uint32_t page)
{
    const uint64_t *entries = heap->buffers.entries;
    uint32_t end = page + 1;

    while (end < heap->self.segment_pages && entries[end] == entries[page])
        end++;
    return end - page;
}

/* Lists the blocks and slabs of a segment, in order. */
static size_t list_items(struct culet_heap *heap)
{
    const struct culet_selfmap *self = &heap->self;
    size_t count = 0;

    for (uint32_t page = 0, pages; page < self->segment_pages; page += pages) {
        uint64_t entry = heap->buffers.entries[page];
        bool is_slab = culet_selfmap_is_slab(self, entry);
        pages = 1;
        if (!entry || entry & 1)
            continue;
        if (is_slab)
            pages = pages_alike(heap, page);
        heap->buffers.items[count++] = (struct culet_segment_item){
            .page = page, .pages = pages, .descriptor = culet_selfmap_span(self, entry), .is_slab = is_slab};
    }
    return count;
}

/* ---- descriptors ---- */

/* Room for any descriptor: a slab's and a large block's differ in length. */
static size_t descriptor_bytes(const struct culet_heap *heap)
{
    return heap->self.slab.bytes > heap->self.large.bytes ? heap->self.slab.bytes : heap->self.large.bytes;
}

/* Copies the descriptors of `count` items, each kind with its own length. */
static void read_descriptors(struct culet_reading *reading, struct culet_heap *heap,
                             const struct culet_segment_item *items, size_t count)
{
    struct culet_segment_buffers *buffers = &heap->buffers;

    for (unsigned slabs = 0; slabs <= 1; slabs++) {
        size_t bytes = slabs ? heap->self.slab.bytes : heap->self.large.bytes, wanted = 0;
        unsigned char *copies = buffers->descriptors + BATCH * descriptor_bytes(heap);
        for (size_t i = 0; i < count; i++)
            if (items[i].is_slab == slabs)
                buffers->addresses[wanted++] = items[i].descriptor;
        if (!wanted)
            continue;
        culet_memory_copy_batch(&reading->memory, buffers->addresses, wanted, bytes, copies, buffers->got + BATCH);
        for (size_t i = count, n = wanted; i-- > 0;)
            if (items[i].is_slab == slabs) {
                n--;
                memcpy(buffers->descriptors + i * descriptor_bytes(heap), copies + n * bytes, bytes);
                buffers->got[i] = buffers->got[BATCH + n];
            }
    }
}

/* The slab's shape; NULL if the descriptor has no valid class. */
static const struct culet_shape *shape_of(const struct culet_heap *heap, const unsigned char *descriptor)
{
    uint32_t klass = descriptor[heap->self.span.klass];

    return klass && klass < heap->self.class_entries ? &heap->shapes[klass] : NULL;
}

/* Whether the descriptor is the one that the pagemap leads to; else the process has changed it meanwhile. A slab's first
 * block may begin some cache lines behind its first page's start. */
static bool is_expected(const struct culet_heap *heap, const struct culet_segment_item *item,
                        const unsigned char *descriptor, uint64_t start)
{
    const struct culet_selfmap *self = &heap->self;
    const struct culet_shape *shape;
    uint64_t behind = culet_word_at(descriptor + self->span.start) - start;

    if (!item->is_slab)
        return !behind && descriptor[self->span.kind] == self->kind_large;
    return descriptor[self->span.kind] == self->kind_slab && (shape = shape_of(heap, descriptor)) &&
           shape->pages == item->pages &&
           behind <= (uint64_t)shape->pages * self->page_bytes - (uint64_t)shape->blocks * shape->size;
}

/* ---- slabs ---- */

struct slab_walk {
    struct culet_reading *reading;
    struct culet_heap *heap;
    struct culet_region *region;
    const struct culet_shape *shape;
    uint64_t start;
    uint64_t blocks[2]; /* by state */
};

static void add_blocks(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state)
{
    struct slab_walk *walk = context;
    uint64_t size = walk->shape->size, from = walk->start + first * size;

    walk->blocks[state] += blocks;
    if (state == CULET_BLOCK_USED)
        culet_region_use(walk->region, from, from + blocks * size);
    culet_region_add_blocks(&walk->reading->regions, walk->region, size, blocks, state);
}

static void walk_slab(struct culet_reading *reading, struct culet_heap *heap, struct culet_region *region,
                      const unsigned char *descriptor)
{
    const struct culet_shape *shape = shape_of(heap, descriptor);
    struct slab_walk walk = {.reading = reading,
                             .heap = heap,
                             .region = region,
                             .shape = shape,
                             .start = culet_word_at(descriptor + heap->self.span.start)};
    uint64_t bytes = (uint64_t)shape->pages * heap->self.page_bytes;

    culet_slab_each(&heap->self, shape, descriptor, add_blocks, &walk);
    culet_heap_add_block(reading, region, bytes - (uint64_t)shape->blocks * shape->size, CULET_BLOCK_OVERHEAD);
    heap->used_bytes += walk.blocks[CULET_BLOCK_USED] * shape->size;
    for (unsigned state = CULET_BLOCK_USED; state <= CULET_BLOCK_FREE; state++)
        culet_histogram_add(&heap->sizes, state, shape->size, walk.blocks[state]);
}

/* ---- all items ---- */

/* Skips the pages of an item that cannot be interpreted. */
static uint32_t skip_item(struct culet_reading *reading, struct culet_heap *heap, struct culet_region *region,
                          const struct culet_segment_item *item)
{
    heap->inconsistent++;
    culet_heap_add_block(reading, region, (uint64_t)item->pages * heap->self.page_bytes, CULET_BLOCK_OVERHEAD);
    return item->pages;
}

/* Adds pages that belong to no block or slab. */
static void add_free_pages(struct culet_reading *reading, const struct culet_heap *heap, struct culet_region *region,
                           uint32_t pages)
{
    culet_heap_add_block(reading, region, (uint64_t)pages * heap->self.page_bytes, CULET_BLOCK_FREE);
}

/* Walks one large block or slab, whose descriptor has the number `index` in the batch. Returns its pages. */
static uint32_t walk_item(struct culet_reading *reading, struct culet_heap *heap, struct culet_region *region,
                          const struct culet_segment_item *item, size_t index)
{
    const struct culet_selfmap *self = &heap->self;
    const unsigned char *descriptor = heap->buffers.descriptors + index * descriptor_bytes(heap);
    uint64_t start = region->start + (uint64_t)item->page * self->page_bytes, bytes;
    uint32_t left = self->segment_pages - item->page;

    if (!heap->buffers.got[index] || !is_expected(heap, item, descriptor, start))
        return skip_item(reading, heap, region, item);
    if (item->is_slab) {
        walk_slab(reading, heap, region, descriptor);
        return item->pages;
    }
    bytes = culet_word_at(descriptor + self->large.length);
    if (!bytes || bytes % self->page_bytes || bytes / self->page_bytes > left)
        return skip_item(reading, heap, region, item);
    culet_region_use(region, start, start + bytes);
    culet_heap_add_block(reading, region, bytes, CULET_BLOCK_USED);
    culet_histogram_add(&heap->sizes, CULET_BLOCK_USED, bytes, 1);
    heap->used_bytes += bytes;
    return (uint32_t)(bytes / self->page_bytes);
}

/* Returns the first page after all items. */
static uint32_t walk_items(struct culet_reading *reading, struct culet_heap *heap, struct culet_region *region,
                           size_t count)
{
    uint32_t page = 0;

    for (size_t i = 0; i < count; i++) {
        const struct culet_segment_item *item = &heap->buffers.items[i];
        if (i % BATCH == 0) {
            if (i)
                culet_heap_yield(reading, heap);
            read_descriptors(reading, heap, item, count - i < BATCH ? count - i : BATCH);
        }
        if (item->page < page) { /* inside of the item before: it has changed meanwhile */
            heap->inconsistent++;
            continue;
        }
        add_free_pages(reading, heap, region, item->page - page);
        page = item->page + walk_item(reading, heap, region, item, i % BATCH);
    }
    return page;
}

/* A trim returns resident pages without a used block. */
static void count_trim(const struct culet_reading *reading, struct culet_heap *heap, const struct culet_region *region)
{
    struct culet_page_run run;

    for (uint64_t i = 0; i < region->pages; i += run.count) {
        run = culet_region_page_run(region, i);
        for (uint64_t n = 0; run.states && n < run.count; n++)
            if (run.states[n] & CULET_PAGE_PRESENT && !run.used[n])
                heap->trim_bytes += reading->page_bytes;
    }
}

void culet_segment_walk(struct culet_reading *reading, struct culet_heap *heap, uint64_t address)
{
    const struct culet_selfmap *self = &heap->self;
    uint64_t bytes = (uint64_t)self->segment_pages * self->page_bytes, base;
    struct culet_region *region = NULL;

    prepare_buffers(heap, descriptor_bytes(heap));
    if (!culet_memory_word(&reading->memory, address + self->segment.base, &base))
        return;
    if (base % self->page_bytes == 0)
        region = culet_heap_new_region(reading, heap, "slabs", base, base + bytes, false);
    if (!region) {
        heap->inconsistent++;
        return;
    }
    read_entries(reading, heap, base, self->segment_pages, heap->buffers.entries);
    size_t count = list_items(heap);
    add_free_pages(reading, heap, region, self->segment_pages - walk_items(reading, heap, region, count));
    count_trim(reading, heap, region);
    heap->segments++;
}
