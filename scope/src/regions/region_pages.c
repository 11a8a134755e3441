/* The table of pages of a region: three bytes per page, in leaves that exist only where a page is used in part or in memory.
 * A region of 8 TiB takes 32 MB of addresses and next to no memory. */
#include "regions/region.h"

#include <stdlib.h>
#include <string.h>

#define UNIT 8 /* bytes of a used unit */
#define LEAF CULET_REGION_LEAF

/* Stands for a leaf whose pages are all fully used and not in memory, in any region. */
static unsigned char full_leaf[1];

static uint16_t units_per_page(const struct culet_regions *regions)
{
    return (uint16_t)((UINT64_C(1) << regions->shift) / UNIT);
}

static uint64_t leaf_count(uint64_t pages)
{
    return (pages + LEAF - 1) / LEAF;
}

/* Pages of one leaf: the last leaf has fewer. */
static size_t leaf_pages(uint64_t pages, uint64_t leaf)
{
    return pages - leaf * LEAF < LEAF ? (size_t)(pages - leaf * LEAF) : LEAF;
}

/* A leaf has the states of its pages first, then their used units (unless the region is full). */
static uint16_t *units_in(unsigned char *leaf, size_t pages)
{
    return (uint16_t *)(void *)(leaf + pages + pages % 2);
}

static bool is_table(const unsigned char *leaf)
{
    return leaf && leaf != full_leaf;
}

static unsigned char *new_leaf(const struct culet_regions *regions, const struct culet_region *region, size_t pages, bool full)
{
    unsigned char *leaf = culet_new(pages + pages % 2 + (region->full ? 0 : pages * sizeof(uint16_t)), 1);

    for (size_t i = 0; full && i < pages; i++)
        units_in(leaf, pages)[i] = units_per_page(regions);
    return leaf;
}

/* The leaf as a table, made if necessary. */
static unsigned char *open_leaf(const struct culet_regions *regions, struct culet_region *region, uint64_t leaf)
{
    unsigned char **at = &region->leaves[leaf];

    if (!is_table(*at))
        *at = new_leaf(regions, region, leaf_pages(region->pages, leaf), *at == full_leaf);
    return *at;
}

static uint16_t *units_at(const struct culet_regions *regions, struct culet_region *region, uint64_t index)
{
    unsigned char *leaf = open_leaf(regions, region, index / LEAF);

    return units_in(leaf, leaf_pages(region->pages, index / LEAF)) + index % LEAF;
}

/* The leaf with another number of pages. */
static unsigned char *resized_leaf(const struct culet_regions *regions, struct culet_region *region, uint64_t leaf, size_t pages)
{
    size_t before = leaf_pages(region->pages, leaf), kept = before < pages ? before : pages;

    if (!region->leaves[leaf] || before == pages)
        return region->leaves[leaf];
    unsigned char *old = open_leaf(regions, region, leaf), *changed = new_leaf(regions, region, pages, false);
    memcpy(changed, old, kept);
    if (!region->full)
        memcpy(units_in(changed, pages), units_in(old, before), kept * sizeof(uint16_t));
    free(old);
    return changed;
}

void culet_region_set_pages(const struct culet_regions *regions, struct culet_region *region, uint64_t pages)
{
    uint64_t before = leaf_count(region->pages), count = leaf_count(pages);
    unsigned char **leaves = culet_new(count, sizeof *leaves);

    for (uint64_t i = 0; i < before; i++)
        if (i < count)
            leaves[i] = resized_leaf(regions, region, i, leaf_pages(pages, i));
        else if (is_table(region->leaves[i]))
            free(region->leaves[i]);
    free(region->leaves);
    region->leaves = leaves;
    region->pages = pages;
}

struct culet_page_run culet_region_page_run(const struct culet_region *region, uint64_t index)
{
    uint64_t leaf = index / LEAF, count = leaf_count(region->pages);
    unsigned char *table = region->leaves[leaf];
    struct culet_page_run run = {.first = index, .full = region->full || table == full_leaf};

    if (is_table(table)) {
        size_t pages = leaf_pages(region->pages, leaf);
        run.count = pages - index % LEAF;
        run.states = table + index % LEAF;
        run.used = region->full ? NULL : units_in(table, pages) + index % LEAF;
        return run;
    }
    while (leaf < count && region->leaves[leaf] == table)
        leaf++;
    run.count = (leaf == count ? region->pages : leaf * LEAF) - index;
    return run;
}

uint8_t culet_region_state(const struct culet_regions *regions, const struct culet_region *region, uint64_t address)
{
    uint64_t index = (address >> regions->shift) - (region->start >> regions->shift);

    return index < region->pages && is_table(region->leaves[index / LEAF]) ? region->leaves[index / LEAF][index % LEAF] : 0;
}

uint16_t culet_region_units(const struct culet_regions *regions, const struct culet_region *region, uint64_t address)
{
    uint64_t index = (address >> regions->shift) - (region->start >> regions->shift);
    struct culet_page_run run = {0};

    if (index < region->pages)
        run = culet_region_page_run(region, index);
    return run.used ? run.used[0] : run.full ? units_per_page(regions) : 0;
}

uint64_t culet_region_page_share(const struct culet_regions *regions, const struct culet_region *region, uint64_t index)
{
    uint64_t start = ((region->start >> regions->shift) + index) << regions->shift;
    uint64_t end = start + (UINT64_C(1) << regions->shift);

    return (end < region->end ? end : region->end) - (start > region->start ? start : region->start);
}

uint64_t culet_region_page_used(const struct culet_regions *regions, const struct culet_region *region,
                                const struct culet_page_run *run, uint64_t index)
{
    if (run->used)
        return (uint64_t)run->used[index - run->first] * UNIT;
    return run->full ? culet_region_page_share(regions, region, index) : 0;
}

/* ---- changes ---- */

/* Whether from..to covers the whole leaf that begins at page `index`, of which nothing is known. */
static bool fills_leaf(const struct culet_regions *regions, const struct culet_region *region, uint64_t index, uint64_t from,
                       uint64_t to)
{
    return index % LEAF == 0 && index + LEAF <= region->pages && !region->leaves[index / LEAF] &&
           !(from & ((UINT64_C(1) << regions->shift) - 1)) && (to - from) >> regions->shift >= LEAF;
}

/* Adds the bytes of from..to to the pages' used bytes, or subtracts them. A hostile heap may count bytes twice: the result
 * is clamped. */
static void count_bytes(const struct culet_regions *regions, struct culet_region *region, uint64_t from, uint64_t to, bool add)
{
    uint64_t first = region->start >> regions->shift;
    uint32_t most = units_per_page(regions);

    if (region->full)
        return;
    if (from < region->start)
        from = region->start;
    if (to > region->end)
        to = region->end;
    while (from < to) {
        uint64_t index = (from >> regions->shift) - first, end = ((from >> regions->shift) + 1) << regions->shift;
        if (add && fills_leaf(regions, region, index, from, to)) {
            region->leaves[index / LEAF] = full_leaf;
            from += (uint64_t)LEAF << regions->shift;
            continue;
        }
        if (end > to)
            end = to;
        uint32_t units = (uint32_t)((end - from) / UNIT);
        uint16_t *used = units_at(regions, region, index);
        *used = (uint16_t)(add ? *used + units < most ? *used + units : most : *used > units ? *used - units : 0);
        from = end;
    }
}

void culet_region_use(const struct culet_regions *regions, struct culet_region *region, uint64_t from, uint64_t to)
{
    count_bytes(regions, region, from, to, true);
}

void culet_region_unuse(const struct culet_regions *regions, struct culet_region *region, uint64_t from, uint64_t to)
{
    count_bytes(regions, region, from, to, false);
}

void culet_region_rewind(const struct culet_regions *regions, struct culet_region *region, uint64_t address, uint16_t units)
{
    uint64_t index = (address >> regions->shift) - (region->start >> regions->shift), count = leaf_count(region->pages);

    if (index >= region->pages || region->full)
        return;
    size_t left = leaf_pages(region->pages, index / LEAF) - index % LEAF;
    uint16_t *used = units_at(regions, region, index);
    memset(used, 0, left * sizeof *used);
    *used = units;
    for (uint64_t leaf = index / LEAF + 1; leaf < count; leaf++) {
        size_t pages = leaf_pages(region->pages, leaf);
        if (is_table(region->leaves[leaf]))
            memset(units_in(region->leaves[leaf], pages), 0, pages * sizeof *used);
        else
            region->leaves[leaf] = NULL;
    }
}

static bool are_zero(const uint8_t *states, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (states[i])
            return false;
    return true;
}

void culet_region_set_states(const struct culet_regions *regions, struct culet_region *region, uint64_t first,
                             size_t count, const uint8_t *states)
{
    uint64_t base = region->start >> regions->shift, end = base + region->pages;

    if (first < base) {
        size_t before = base - first < count ? (size_t)(base - first) : count;
        first += before;
        states += before;
        count -= before;
    }
    while (count && first < end) {
        uint64_t index = first - base;
        size_t part = leaf_pages(region->pages, index / LEAF) - index % LEAF;
        if (part > count)
            part = count;
        if (is_table(region->leaves[index / LEAF]) || !are_zero(states, part))
            memcpy(open_leaf(regions, region, index / LEAF) + index % LEAF, states, part);
        first += part;
        states += part;
        count -= part;
    }
}
