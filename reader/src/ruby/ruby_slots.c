#include "ruby/ruby_heap.h"

#include <string.h>

/* Reads the slots in the parts of the page that are in memory. The memory up to `limit` will be read next. */
static void read_slots(struct culet_reading *reading, struct culet_ruby *ruby, struct culet_ruby_found_page *page,
                       uint64_t limit)
{
    const struct culet_ruby_page *shape = &page->shape;
    uint64_t end = shape->start + shape->bytes;

    page->bitmap = culet_new(culet_ruby_page_bitmap(shape) + 1, 1);
    for (uint64_t at = shape->start; at < end;) {
        size_t length;
        const unsigned char *memory = culet_memory_span(&reading->memory, at, 8, limit, &length);
        if (!memory) {
            ruby->swapped += (culet_pages_at(&reading->pages, at) & CULET_PAGE_SWAPPED) != 0;
            at = (at | (reading->page_bytes - 1)) + 1;
            continue;
        }
        if (length > end - at)
            length = (size_t)(end - at);
        uint32_t from = (uint32_t)(at - shape->start);
        culet_ruby_page_live(shape, memory, from, from + (uint32_t)length, page->bitmap, &page->slots);
        at += length;
    }
}

static bool is_live(const struct culet_ruby_found_page *page, uint32_t slot)
{
    return page->bitmap[slot / 8] >> slot % 8 & 1;
}

/* Bytes of from..to that are in memory. */
static uint64_t resident_bytes(struct culet_reading *reading, uint64_t from, uint64_t to)
{
    uint64_t bytes = 0;

    while (from < to) {
        uint64_t end = (from | (reading->page_bytes - 1)) + 1;
        if (end > to)
            end = to;
        if (culet_pages_at(&reading->pages, from) & CULET_PAGE_PRESENT)
            bytes += end - from;
        from = end;
    }
    return bytes;
}

/* Counts runs of slots in one state. `region` is NULL for a page that is a block of malloc's. */
static void count_slots(struct culet_reading *reading, struct culet_ruby *ruby, struct culet_region *region,
                        const struct culet_ruby_found_page *page)
{
    const struct culet_ruby_page *shape = &page->shape;
    uint64_t first = shape->start + shape->first, slots = (uint64_t)shape->slots * shape->slot_bytes;
    uint64_t resident = resident_bytes(reading, shape->start, shape->start + shape->bytes), in_slots = 0;

    if (!shape->slots) {
        ruby->all.free += shape->bytes;
        ruby->resident.free += resident;
        return;
    }
    for (uint32_t from = 0, to; from < shape->slots; from = to) {
        bool live = is_live(page, from);
        for (to = from + 1; to < shape->slots && is_live(page, to) == live;)
            to++;
        uint64_t start = first + (uint64_t)from * shape->slot_bytes, end = first + (uint64_t)to * shape->slot_bytes;
        uint64_t here = resident_bytes(reading, start, end);
        in_slots += here;
        *(live ? &ruby->resident.live : &ruby->resident.free) += here;
        *(live ? &ruby->all.live : &ruby->all.free) += end - start;
        if (live && region)
            culet_region_use(region, start, end);
    }
    ruby->all.overhead += shape->bytes - slots;
    ruby->resident.overhead += resident - in_slots;
}

/* Adjacent pages in one mapping become one region, up to this number. */
#define PAGES_PER_REGION 256

/* The end of the adjacent pages from page `from` on. */
static size_t adjacent_end(const struct culet_reading *reading, const struct culet_ruby *ruby, size_t from)
{
    const struct culet_ruby_found_page *pages = ruby->pages;
    const struct culet_mapping *mapping = culet_maps_at(&reading->maps, pages[from].shape.start);
    size_t to = from + 1;

    while (to < ruby->count && to - from < PAGES_PER_REGION &&
           pages[to].shape.start == pages[to - 1].shape.start + ruby->page_bytes && mapping &&
           pages[to].shape.start < mapping->end)
        to++;
    return to;
}

static struct culet_region *new_region(struct culet_reading *reading, uint64_t start, uint64_t end)
{
    struct culet_region *region = culet_reading_new_region(reading, "ruby", CULET_NO_ARENA, start, end, false);

    if (!region)
        return NULL;
    region->malloc = false;
    culet_maps_name_range(&reading->maps, start, end, "ruby", "Ruby's heap");
    return region;
}

/* Walks the pages from..to, which are one region. Returns false if there cannot be such a region: then these are no
 * pages. */
static bool walk_region(struct culet_reading *reading, struct culet_ruby *ruby, size_t from, size_t to)
{
    uint64_t start = ruby->pages[from].shape.start, end = ruby->pages[to - 1].shape.start + ruby->page_bytes;
    bool in_malloc = culet_ruby_pages_in_malloc(reading) && culet_regions_at(&reading->regions, start);
    struct culet_region *region = in_malloc ? NULL : new_region(reading, start, end);

    if (!in_malloc && !region)
        return false;
    for (size_t i = from; i < to; i++) {
        struct culet_ruby_found_page *page = &ruby->pages[i];
        if (region)
            culet_reading_note_states(reading, region, page->shape.start, page->shape.start + ruby->page_bytes);
        read_slots(reading, ruby, page, end);
        count_slots(reading, ruby, region, page);
        culet_reading_yield(reading);
    }
    return true;
}

void culet_ruby_walk_pages(struct culet_reading *reading, struct culet_ruby *ruby)
{
    size_t kept = 0;

    for (size_t i = 0, to; i < ruby->count; i = to) {
        to = adjacent_end(reading, ruby, i);
        if (!walk_region(reading, ruby, i, to))
            continue;
        memmove(ruby->pages + kept, ruby->pages + i, (to - i) * sizeof *ruby->pages);
        kept += to - i;
    }
    ruby->count = kept;
}
