#include "regions/regions.h"

#include "base/search.h"

#include <string.h>

static uint64_t pages_of(const struct culet_regions *regions, uint64_t start, uint64_t end)
{
    return end > start ? ((end - 1) >> regions->shift) - (start >> regions->shift) + 1 : 0;
}

/* Index of the first region that ends after the address. */
static size_t find(const struct culet_regions *regions, uint64_t address)
{
    return CULET_FIRST_WHERE(i, 0, regions->count, regions->all[i]->end > address);
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
    *region = (struct culet_region){.id = (uint32_t)regions->count,
                                    .arena = arena,
                                    .kind = kind,
                                    .malloc = true,
                                    .start = start,
                                    .end = end,
                                    .full = full,
                                    .first_block = start,
                                    .shift = regions->shift};
    culet_region_set_pages(region, pages_of(regions, start, end));
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
    culet_region_set_pages(region, pages_of(regions, region->start, end));
    region->end = end;
    return true;
}
