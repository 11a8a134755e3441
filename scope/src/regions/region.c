#include "regions/region.h"

#include <string.h>

static uint64_t pages_of(const struct culet_regions *regions, uint64_t start, uint64_t end)
{
    return end > start ? ((end - 1) >> regions->shift) - (start >> regions->shift) + 1 : 0;
}

/* Index of the first region that ends after the address. */
static size_t find(const struct culet_regions *regions, uint64_t address)
{
    size_t from = 0, to = regions->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (regions->all[middle]->end <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct culet_region *culet_regions_next(const struct culet_regions *regions, uint64_t address)
{
    size_t at = find(regions, address);

    return at < regions->count ? regions->all[at] : NULL;
}

struct culet_region *culet_regions_at(const struct culet_regions *regions, uint64_t address)
{
    struct culet_region *region = culet_regions_next(regions, address);

    return region && region->start <= address ? region : NULL;
}

struct culet_region *culet_region_new(struct culet_regions *regions, const char *kind, uint32_t arena, uint64_t start,
                                      uint64_t end, bool full)
{
    size_t at = find(regions, start);

    if (start >= end || (at < regions->count && regions->all[at]->start < end))
        return NULL;
    struct culet_region *region = culet_new(1, sizeof *region);
    *region = (struct culet_region){.id = (uint32_t)regions->count, .arena = arena, .kind = kind, .malloc = true,
                                    .start = start, .end = end, .full = full, .first_block = start};
    culet_region_set_pages(regions, region, pages_of(regions, start, end));
    regions->all = culet_grow(regions->all, &regions->room, regions->count + 1, sizeof *regions->all);
    memmove(regions->all + at + 1, regions->all + at, (regions->count - at) * sizeof *regions->all);
    regions->all[at] = region;
    regions->count++;
    return region;
}

bool culet_region_resize(const struct culet_regions *regions, struct culet_region *region, uint64_t end)
{
    const struct culet_region *next = culet_regions_next(regions, region->end);

    if (end <= region->start || (next && next->start < end))
        return false;
    culet_region_set_pages(regions, region, pages_of(regions, region->start, end));
    region->end = end;
    return true;
}

void culet_region_add_overhead(struct culet_region *region, uint64_t from, uint64_t to)
{
    region->overhead = culet_grow(region->overhead, &region->overhead_room, region->overhead_count + 1,
                                  sizeof *region->overhead);
    region->overhead[region->overhead_count++] = (struct culet_range){from, to};
}

/* ---- sums ---- */

uint64_t culet_region_bytes_in_state(const struct culet_regions *regions, const struct culet_region *region, uint64_t from,
                                     uint64_t to, uint8_t state)
{
    uint64_t base = region->start >> regions->shift, bytes = 0;

    if (from < region->start)
        from = region->start;
    if (to > region->end)
        to = region->end;
    while (from < to) {
        struct culet_page_run run = culet_region_page_run(region, (from >> regions->shift) - base);
        uint64_t end = (run.states ? (from >> regions->shift) + 1 : base + run.first + run.count) << regions->shift;
        if (end > to)
            end = to;
        if (run.states && run.states[0] & state)
            bytes += end - from;
        from = end;
    }
    return bytes;
}

uint64_t culet_region_resident(const struct culet_regions *regions, const struct culet_region *region)
{
    struct culet_page_run run;
    uint64_t pages = 0;

    for (uint64_t i = 0; i < region->pages; i += run.count) {
        run = culet_region_page_run(region, i);
        for (uint64_t n = 0; run.states && n < run.count; n++)
            pages += (run.states[n] & CULET_PAGE_PRESENT) != 0;
    }
    return pages << regions->shift;
}

static void add_page(struct culet_region_sum *sum, uint8_t state, uint64_t share, uint64_t used)
{
    uint64_t left = used < share ? share - used : 0;

    if (state & CULET_PAGE_PRESENT) {
        sum->used_resident += used;
        sum->free_resident += left;
    } else if (state & CULET_PAGE_SWAPPED) {
        sum->free_swapped += left;
    }
}

static uint64_t subtract(uint64_t all, uint64_t part)
{
    return part < all ? all - part : 0;
}

/* Takes the overhead, which the pages count as free, out of the free bytes. */
static void move_overhead(const struct culet_regions *regions, const struct culet_region *region, struct culet_region_sum *sum)
{
    for (size_t i = 0; i < region->overhead_count; i++) {
        const struct culet_range *range = &region->overhead[i];
        uint64_t resident = culet_region_bytes_in_state(regions, region, range->start, range->end, CULET_PAGE_PRESENT);
        uint64_t swapped = culet_region_bytes_in_state(regions, region, range->start, range->end, CULET_PAGE_SWAPPED);
        sum->overhead += range->end - range->start;
        sum->overhead_resident += resident;
        sum->free_resident = subtract(sum->free_resident, resident);
        sum->free_swapped = subtract(sum->free_swapped, swapped);
    }
}

struct culet_region_sum culet_region_sum(const struct culet_regions *regions, const struct culet_region *region)
{
    struct culet_region_sum sum = {0};
    struct culet_page_run run;

    for (uint64_t i = 0; i < region->pages; i += run.count) {
        run = culet_region_page_run(region, i);
        if (!run.used && run.full && !region->full)
            sum.used += run.count << regions->shift;
        for (uint64_t page = i; run.states && page < i + run.count; page++) {
            uint64_t used = culet_region_page_used(regions, region, &run, page);
            if (!region->full)
                sum.used += used;
            add_page(&sum, run.states[page - i], culet_region_page_share(regions, region, page), used);
        }
    }
    if (region->full)
        sum.used = region->end - region->start;
    move_overhead(regions, region, &sum);
    sum.free = subtract(region->end - region->start, sum.used + sum.overhead);
    return sum;
}
