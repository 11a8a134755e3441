#include "regions/region.h"

#include <stdlib.h>
#include <string.h>

#define UNIT 8    /* bytes of a used unit */
#define LEAF 512u /* pages of a leaf */

/* ---- the table of pages ---- */

/* Stands for a leaf whose pages are all fully used and not in memory, in any region. */
static unsigned char full_leaf[1];

static uint16_t units_per_page(const struct culet_region *region)
{
    return (uint16_t)((UINT64_C(1) << region->shift) / UNIT);
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

static unsigned char *new_leaf(const struct culet_region *region, size_t pages, bool full)
{
    unsigned char *leaf = culet_new(pages + pages % 2 + (region->full ? 0 : pages * sizeof(uint16_t)), 1);

    for (size_t i = 0; full && i < pages; i++)
        units_in(leaf, pages)[i] = units_per_page(region);
    return leaf;
}

/* The leaf as a table, made if necessary. */
static unsigned char *open_leaf(struct culet_region *region, uint64_t leaf)
{
    unsigned char **at = &region->leaves[leaf];

    if (!is_table(*at))
        *at = new_leaf(region, leaf_pages(region->pages, leaf), *at == full_leaf);
    return *at;
}

static uint16_t *units_at(struct culet_region *region, uint64_t index)
{
    unsigned char *leaf = open_leaf(region, index / LEAF);

    return units_in(leaf, leaf_pages(region->pages, index / LEAF)) + index % LEAF;
}

/* The leaf with another number of pages. */
static unsigned char *resized_leaf(struct culet_region *region, uint64_t leaf, size_t pages)
{
    size_t before = leaf_pages(region->pages, leaf), kept = before < pages ? before : pages;

    if (!region->leaves[leaf] || before == pages)
        return region->leaves[leaf];
    unsigned char *old = open_leaf(region, leaf), *changed = new_leaf(region, pages, false);
    memcpy(changed, old, kept);
    if (!region->full)
        memcpy(units_in(changed, pages), units_in(old, before), kept * sizeof(uint16_t));
    free(old);
    return changed;
}

void culet_region_set_pages(struct culet_region *region, uint64_t pages)
{
    uint64_t before = leaf_count(region->pages), count = leaf_count(pages);
    unsigned char **leaves = culet_new(count, sizeof *leaves);

    for (uint64_t i = 0; i < before; i++)
        if (i < count)
            leaves[i] = resized_leaf(region, i, leaf_pages(pages, i));
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

uint16_t culet_region_units(const struct culet_region *region, uint64_t address)
{
    uint64_t index = (address >> region->shift) - (region->start >> region->shift);
    struct culet_page_run run = {0};

    if (index < region->pages)
        run = culet_region_page_run(region, index);
    return run.used ? run.used[0] : run.full ? units_per_page(region) : 0;
}

/* Bytes of page `index` that belong to the region. */
static uint64_t page_share(const struct culet_region *region, uint64_t index)
{
    uint64_t start = ((region->start >> region->shift) + index) << region->shift;
    uint64_t end = start + (UINT64_C(1) << region->shift);

    return (end < region->end ? end : region->end) - (start > region->start ? start : region->start);
}

uint64_t culet_region_page_used(const struct culet_region *region, const struct culet_page_run *run, uint64_t index)
{
    if (run->used)
        return (uint64_t)run->used[index - run->first] * UNIT;
    return run->full ? page_share(region, index) : 0;
}

/* ---- changes ---- */

/* Whether from..to covers the whole leaf that begins at page `index`, of which nothing is known. */
static bool fills_leaf(const struct culet_region *region, uint64_t index, uint64_t from, uint64_t to)
{
    return index % LEAF == 0 && index + LEAF <= region->pages && !region->leaves[index / LEAF] &&
           !(from & ((UINT64_C(1) << region->shift) - 1)) && (to - from) >> region->shift >= LEAF;
}

/* Adds the bytes of from..to to the pages' used bytes, or subtracts them. A hostile heap may count bytes twice: the
 * result is clamped. */
static void count_bytes(struct culet_region *region, uint64_t from, uint64_t to, bool add)
{
    uint64_t first = region->start >> region->shift;
    uint32_t most = units_per_page(region);

    if (region->full)
        return;
    if (from < region->start)
        from = region->start;
    if (to > region->end)
        to = region->end;
    while (from < to) {
        uint64_t index = (from >> region->shift) - first, end = ((from >> region->shift) + 1) << region->shift;
        if (add && fills_leaf(region, index, from, to)) {
            region->leaves[index / LEAF] = full_leaf;
            from += (uint64_t)LEAF << region->shift;
            continue;
        }
        if (end > to)
            end = to;
        uint32_t units = (uint32_t)((end - from) / UNIT);
        uint16_t *used = units_at(region, index);
        *used = (uint16_t)(add ? *used + units < most ? *used + units : most : *used > units ? *used - units : 0);
        from = end;
    }
}

void culet_region_use(struct culet_region *region, uint64_t from, uint64_t to)
{
    count_bytes(region, from, to, true);
}

void culet_region_unuse(struct culet_region *region, uint64_t from, uint64_t to)
{
    count_bytes(region, from, to, false);
}

void culet_region_empty(struct culet_region *region)
{
    uint64_t count = leaf_count(region->pages);

    if (!region->full)
        return;
    region->full = false;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *states = region->leaves[i];
        size_t pages = leaf_pages(region->pages, i);
        region->leaves[i] = is_table(states) ? new_leaf(region, pages, false) : NULL;
        if (!is_table(states))
            continue;
        memcpy(region->leaves[i], states, pages);
        free(states);
    }
}

void culet_region_rewind(struct culet_region *region, uint64_t address, uint16_t units)
{
    uint64_t index = (address >> region->shift) - (region->start >> region->shift), count = leaf_count(region->pages);

    if (index >= region->pages || region->full)
        return;
    size_t left = leaf_pages(region->pages, index / LEAF) - index % LEAF;
    uint16_t *used = units_at(region, index);
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

void culet_region_set_states(struct culet_region *region, uint64_t first, size_t count, const uint8_t *states)
{
    uint64_t base = region->start >> region->shift, end = base + region->pages;

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
            memcpy(open_leaf(region, index / LEAF) + index % LEAF, states, part);
        first += part;
        states += part;
        count -= part;
    }
}

void culet_region_add_overhead(struct culet_region *region, uint64_t from, uint64_t to)
{
    CULET_APPEND(region->overhead, region->overhead_count, region->overhead_room) = (struct culet_range){from, to};
}

/* ---- sums ---- */

uint64_t culet_region_bytes_in_state(const struct culet_region *region, uint64_t from, uint64_t to, uint8_t state)
{
    uint64_t base = region->start >> region->shift, bytes = 0;

    if (from < region->start)
        from = region->start;
    if (to > region->end)
        to = region->end;
    while (from < to) {
        struct culet_page_run run = culet_region_page_run(region, (from >> region->shift) - base);
        uint64_t end = (run.states ? (from >> region->shift) + 1 : base + run.first + run.count) << region->shift;
        if (end > to)
            end = to;
        if (run.states && run.states[0] & state)
            bytes += end - from;
        from = end;
    }
    return bytes;
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
static void move_overhead(const struct culet_region *region, struct culet_region_sum *sum)
{
    for (size_t i = 0; i < region->overhead_count; i++) {
        const struct culet_range *range = &region->overhead[i];
        uint64_t resident = culet_region_bytes_in_state(region, range->start, range->end, CULET_PAGE_PRESENT);
        uint64_t swapped = culet_region_bytes_in_state(region, range->start, range->end, CULET_PAGE_SWAPPED);
        sum->overhead += range->end - range->start;
        sum->overhead_resident += resident;
        sum->free_resident = subtract(sum->free_resident, resident);
        sum->free_swapped = subtract(sum->free_swapped, swapped);
    }
}

struct culet_region_sum culet_region_sum(const struct culet_region *region)
{
    struct culet_region_sum sum = {0};
    struct culet_page_run run;

    for (uint64_t i = 0; i < region->pages; i += run.count) {
        run = culet_region_page_run(region, i);
        if (!run.used && run.full && !region->full)
            sum.used += run.count << region->shift;
        for (uint64_t page = i; run.states && page < i + run.count; page++) {
            uint64_t used = culet_region_page_used(region, &run, page);
            if (!region->full)
                sum.used += used;
            add_page(&sum, run.states[page - i], page_share(region, page), used);
        }
    }
    if (region->full)
        sum.used = region->end - region->start;
    move_overhead(region, &sum);
    sum.free = subtract(region->end - region->start, sum.used + sum.overhead);
    return sum;
}
