#include "place.h"

#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define UNIT 8 /* of used units */
#define LEAF CULET_PLACE_LEAF

/* All pages of a leaf are used wholly, and none is in memory: stands for that in any region. */
static unsigned char full_leaf[1];

/* ---- a region's table of pages ---- */

static uint64_t pages_of(const struct culet_places *places, uint64_t start, uint64_t end)
{
    return end > start ? ((end - 1) >> places->shift) - (start >> places->shift) + 1 : 0;
}

static uint64_t leaves_of(uint64_t pages)
{
    return (pages + LEAF - 1) / LEAF;
}

/* Pages of one leaf: the last one has fewer. */
static size_t leaf_pages(uint64_t pages, uint64_t leaf)
{
    return pages - leaf * LEAF < LEAF ? (size_t)(pages - leaf * LEAF) : LEAF;
}

/* A leaf's states come first, then used units, if any are kept. */
static uint16_t *units_in(unsigned char *leaf, size_t pages)
{
    return (uint16_t *)(void *)(leaf + pages + pages % 2);
}

static bool is_table(const unsigned char *leaf)
{
    return leaf && leaf != full_leaf;
}

static unsigned char *new_leaf(const struct culet_places *places, const struct culet_place *place, size_t pages, bool full)
{
    unsigned char *leaf = culet_new(pages + pages % 2 + (place->whole ? 0 : pages * sizeof(uint16_t)), 1);

    for (size_t i = 0; full && i < pages; i++)
        units_in(leaf, pages)[i] = (uint16_t)((UINT64_C(1) << places->shift) / UNIT);
    return leaf;
}

/* The leaf, as a table of its own. */
static unsigned char *open_leaf(const struct culet_places *places, struct culet_place *place, uint64_t leaf)
{
    unsigned char **at = &place->leaves[leaf];

    if (!is_table(*at))
        *at = new_leaf(places, place, leaf_pages(place->pages, leaf), *at == full_leaf);
    return *at;
}

static uint16_t *units_at(const struct culet_places *places, struct culet_place *place, uint64_t index)
{
    unsigned char *leaf = open_leaf(places, place, index / LEAF);

    return units_in(leaf, leaf_pages(place->pages, index / LEAF)) + index % LEAF;
}

/* A leaf that is to have another number of pages. */
static unsigned char *resized_leaf(const struct culet_places *places, struct culet_place *place, uint64_t leaf, size_t pages)
{
    size_t before = leaf_pages(place->pages, leaf), kept = before < pages ? before : pages;

    if (!place->leaves[leaf] || before == pages)
        return place->leaves[leaf];
    unsigned char *old = open_leaf(places, place, leaf), *changed = new_leaf(places, place, pages, false);
    memcpy(changed, old, kept);
    if (!place->whole)
        memcpy(units_in(changed, pages), units_in(old, before), kept * sizeof(uint16_t));
    free(old);
    return changed;
}

struct culet_place_run culet_place_run(const struct culet_place *place, uint64_t index)
{
    uint64_t leaf = index / LEAF, count = leaves_of(place->pages);
    unsigned char *table = place->leaves[leaf];
    struct culet_place_run run = {.first = index, .full = place->whole || table == full_leaf};

    if (is_table(table)) {
        size_t pages = leaf_pages(place->pages, leaf);
        run.count = pages - index % LEAF;
        run.states = table + index % LEAF;
        run.used = place->whole ? NULL : units_in(table, pages) + index % LEAF;
        return run;
    }
    while (leaf < count && place->leaves[leaf] == table)
        leaf++;
    run.count = (leaf == count ? place->pages : leaf * LEAF) - index;
    return run;
}

uint8_t culet_place_state(const struct culet_places *places, const struct culet_place *place, uint64_t address)
{
    uint64_t index = (address >> places->shift) - (place->start >> places->shift);

    return index < place->pages && is_table(place->leaves[index / LEAF]) ? place->leaves[index / LEAF][index % LEAF] : 0;
}

uint16_t culet_place_units(const struct culet_places *places, const struct culet_place *place, uint64_t address)
{
    uint64_t index = (address >> places->shift) - (place->start >> places->shift);
    struct culet_place_run run = {0};

    if (index < place->pages)
        run = culet_place_run(place, index);
    return run.used ? run.used[0] : run.full ? (uint16_t)((UINT64_C(1) << places->shift) / UNIT) : 0;
}

/* ---- regions ---- */

/* Index of the first region that ends behind the address. */
static size_t find(const struct culet_places *places, uint64_t address)
{
    size_t from = 0, to = places->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (places->all[middle]->end <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct culet_place *culet_places_next(const struct culet_places *places, uint64_t address)
{
    size_t at = find(places, address);

    return at < places->count ? places->all[at] : NULL;
}

struct culet_place *culet_places_at(const struct culet_places *places, uint64_t address)
{
    struct culet_place *place = culet_places_next(places, address);

    return place && place->start <= address ? place : NULL;
}

struct culet_place *culet_place_new(struct culet_places *places, const char *kind, uint32_t arena, uint64_t start,
                                    uint64_t end, bool whole)
{
    size_t at = find(places, start);

    if (start >= end || (at < places->count && places->all[at]->start < end))
        return NULL;
    struct culet_place *place = culet_new(1, sizeof *place);
    *place = (struct culet_place){.id = (uint32_t)places->count, .arena = arena, .kind = kind, .malloc = true,
                                  .start = start, .end = end, .whole = whole, .first_chunk = start};
    place->pages = pages_of(places, start, end);
    place->leaves = culet_new(leaves_of(place->pages), sizeof *place->leaves);
    places->all = culet_grow(places->all, &places->room, places->count + 1, sizeof *places->all);
    memmove(places->all + at + 1, places->all + at, (places->count - at) * sizeof *places->all);
    places->all[at] = place;
    places->count++;
    return place;
}

bool culet_place_resize(const struct culet_places *places, struct culet_place *place, uint64_t end)
{
    const struct culet_place *next = culet_places_next(places, place->end);

    if (end <= place->start || (next && next->start < end))
        return false;
    uint64_t pages = pages_of(places, place->start, end), before = leaves_of(place->pages), count = leaves_of(pages);
    unsigned char **leaves = culet_new(count, sizeof *leaves);
    for (uint64_t i = 0; i < before; i++)
        if (i < count)
            leaves[i] = resized_leaf(places, place, i, leaf_pages(pages, i));
        else if (is_table(place->leaves[i]))
            free(place->leaves[i]);
    free(place->leaves);
    place->leaves = leaves;
    place->pages = pages;
    place->end = end;
    return true;
}

/* ---- what is used ---- */

/* A whole leaf from this page on is used that was not, and nothing is known of it. */
static bool fills_leaf(const struct culet_places *places, const struct culet_place *place, uint64_t index, uint64_t from,
                       uint64_t to)
{
    return index % LEAF == 0 && index + LEAF <= place->pages && !place->leaves[index / LEAF] &&
           !(from & ((UINT64_C(1) << places->shift) - 1)) && (to - from) >> places->shift >= LEAF;
}

/* Adds the bytes of from..to to the pages' used bytes, or takes them away. What a process says of its heap may count bytes
 * twice: no page has more than it has. */
static void tally(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to, bool add)
{
    uint64_t first = place->start >> places->shift;
    uint32_t most = (uint32_t)((UINT64_C(1) << places->shift) / UNIT);

    if (place->whole)
        return;
    if (from < place->start)
        from = place->start;
    if (to > place->end)
        to = place->end;
    while (from < to) {
        uint64_t index = (from >> places->shift) - first, end = ((from >> places->shift) + 1) << places->shift;
        if (add && fills_leaf(places, place, index, from, to)) {
            place->leaves[index / LEAF] = full_leaf;
            from += (uint64_t)LEAF << places->shift;
            continue;
        }
        if (end > to)
            end = to;
        uint32_t units = (uint32_t)((end - from) / UNIT);
        uint16_t *used = units_at(places, place, index);
        *used = (uint16_t)(add ? *used + units < most ? *used + units : most : *used > units ? *used - units : 0);
        from = end;
    }
}

void culet_place_use(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to)
{
    tally(places, place, from, to, true);
}

void culet_place_unuse(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to)
{
    tally(places, place, from, to, false);
}

void culet_place_rewind(const struct culet_places *places, struct culet_place *place, uint64_t address, uint16_t units)
{
    uint64_t index = (address >> places->shift) - (place->start >> places->shift), count = leaves_of(place->pages);

    if (index >= place->pages || place->whole)
        return;
    size_t left = leaf_pages(place->pages, index / LEAF) - index % LEAF;
    uint16_t *used = units_at(places, place, index);
    memset(used, 0, left * sizeof *used);
    *used = units;
    for (uint64_t leaf = index / LEAF + 1; leaf < count; leaf++) {
        size_t pages = leaf_pages(place->pages, leaf);
        if (is_table(place->leaves[leaf]))
            memset(units_in(place->leaves[leaf], pages), 0, pages * sizeof *used);
        else
            place->leaves[leaf] = NULL;
    }
}

void culet_place_other(struct culet_place *place, uint64_t from, uint64_t to)
{
    place->other = culet_grow(place->other, &place->other_room, place->others + 1, sizeof *place->other);
    place->other[place->others++] = (struct culet_range){from, to};
}

void culet_place_keep(struct culet_place *place, uint64_t bytes, unsigned state)
{
    uint64_t units = bytes / CULET_BLOCK_UNIT;

    /* More than 16 GiB in one chunk: told in parts. */
    do {
        uint32_t part = units < (1u << 30) ? (uint32_t)units : (1u << 30) - 1;
        uint32_t item = part << 2 | state;
        culet_buffer_add(&place->chunks, &item, sizeof item);
        units -= part;
    } while (units);
}

void culet_place_chunks(struct culet_places *places, struct culet_place *place, uint64_t bytes, uint64_t count,
                        unsigned state)
{
    for (; count && places->chunks < places->max_chunks; count--)
        culet_place_chunk(places, place, bytes, state);
    places->chunks += count;
    place->noted += count;
}

static bool is_nothing(const uint8_t *states, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (states[i])
            return false;
    return true;
}

void culet_place_set_states(const struct culet_places *places, struct culet_place *place, uint64_t first,
                            size_t count, const uint8_t *states)
{
    uint64_t base = place->start >> places->shift, end = base + place->pages;

    if (first < base) {
        size_t before = base - first < count ? (size_t)(base - first) : count;
        first += before;
        states += before;
        count -= before;
    }
    while (count && first < end) {
        uint64_t index = first - base;
        size_t part = leaf_pages(place->pages, index / LEAF) - index % LEAF;
        if (part > count)
            part = count;
        if (is_table(place->leaves[index / LEAF]) || !is_nothing(states, part))
            memcpy(open_leaf(places, place, index / LEAF) + index % LEAF, states, part);
        first += part;
        states += part;
        count -= part;
    }
}

/* ---- sums ---- */

/* Bytes of page `index` that are the region's. */
static uint64_t page_share(const struct culet_places *places, const struct culet_place *place, uint64_t index)
{
    uint64_t start = ((place->start >> places->shift) + index) << places->shift;
    uint64_t end = start + (UINT64_C(1) << places->shift);

    return (end < place->end ? end : place->end) - (start > place->start ? start : place->start);
}

/* Used bytes of page `index` of all, which is in the run. */
static uint64_t page_used(const struct culet_places *places, const struct culet_place *place,
                          const struct culet_place_run *run, uint64_t index)
{
    return run->used ? (uint64_t)run->used[index - run->first] * UNIT : run->full ? page_share(places, place, index) : 0;
}

uint64_t culet_place_in_state(const struct culet_places *places, const struct culet_place *place, uint64_t from,
                              uint64_t to, uint8_t state)
{
    uint64_t base = place->start >> places->shift, bytes = 0;

    if (from < place->start)
        from = place->start;
    if (to > place->end)
        to = place->end;
    while (from < to) {
        struct culet_place_run run = culet_place_run(place, (from >> places->shift) - base);
        uint64_t end = (run.states ? (from >> places->shift) + 1 : base + run.first + run.count) << places->shift;
        if (end > to)
            end = to;
        if (run.states && run.states[0] & state)
            bytes += end - from;
        from = end;
    }
    return bytes;
}

/* A page's figures, of one that is in memory or in swap. */
static void add_page(struct culet_place_sum *sum, uint8_t state, uint64_t share, uint64_t used)
{
    uint64_t left = used < share ? share - used : 0;

    if (state & CULET_PAGE_PRESENT) {
        sum->used_resident += used;
        sum->free_resident += left;
    } else if (state & CULET_PAGE_SWAPPED) {
        sum->free_swapped += left;
    }
}

static uint64_t less(uint64_t all, uint64_t part)
{
    return part < all ? all - part : 0;
}

/* What is `other` was counted as free at first. */
static void add_others(const struct culet_places *places, const struct culet_place *place, struct culet_place_sum *sum)
{
    for (size_t i = 0; i < place->others; i++) {
        const struct culet_range *range = &place->other[i];
        uint64_t resident = culet_place_in_state(places, place, range->start, range->end, CULET_PAGE_PRESENT);
        sum->other += range->end - range->start;
        sum->other_resident += resident;
        sum->free_resident = less(sum->free_resident, resident);
        sum->free_swapped = less(sum->free_swapped, culet_place_in_state(places, place, range->start, range->end, CULET_PAGE_SWAPPED));
    }
}

struct culet_place_sum culet_place_sum(const struct culet_places *places, const struct culet_place *place)
{
    struct culet_place_sum sum = {0};
    struct culet_place_run run;

    for (uint64_t i = 0; i < place->pages; i += run.count) {
        run = culet_place_run(place, i);
        if (!run.used && run.full && !place->whole)
            sum.used += run.count << places->shift;
        for (uint64_t page = i; run.states && page < i + run.count; page++) {
            uint64_t used = page_used(places, place, &run, page);
            if (!place->whole)
                sum.used += used;
            add_page(&sum, run.states[page - i], page_share(places, place, page), used);
        }
    }
    if (place->whole)
        sum.used = place->end - place->start;
    add_others(places, place, &sum);
    sum.free = less(place->end - place->start, sum.used + sum.other);
    return sum;
}

uint64_t culet_place_resident(const struct culet_places *places, const struct culet_place *place)
{
    struct culet_place_run run;
    uint64_t pages = 0;

    for (uint64_t i = 0; i < place->pages; i += run.count) {
        run = culet_place_run(place, i);
        for (uint64_t n = 0; run.states && n < run.count; n++)
            pages += (run.states[n] & CULET_PAGE_PRESENT) != 0;
    }
    return pages << places->shift;
}

/* ---- telling ---- */

/* More pages with that many used bytes each. */
struct fill {
    struct culet_buffer to;
    uint64_t length, used;
};

static void extend(struct fill *fill, uint64_t length, uint64_t used)
{
    if (used != fill->used && fill->length) {
        culet_buffer_varint(&fill->to, fill->length);
        culet_buffer_varint(&fill->to, fill->used);
        fill->length = 0;
    }
    fill->used = used;
    fill->length += length;
}

/* A run of pages about which the same holds. The first and last of all may be the region's in part only. */
static void extend_by_run(const struct culet_places *places, const struct culet_place *place, struct fill *fill,
                          const struct culet_place_run *run)
{
    uint64_t last = run->first + run->count - 1;

    for (uint64_t page = run->first; run->used && page <= last; page++)
        extend(fill, 1, page_used(places, place, run, page));
    if (run->used)
        return;
    extend(fill, 1, page_used(places, place, run, run->first));
    if (run->count > 2)
        extend(fill, run->count - 2, page_used(places, place, run, run->first + 1));
    if (run->count > 1)
        extend(fill, 1, page_used(places, place, run, last));
}

static void tell_fill(const struct culet_places *places, const struct culet_place *place)
{
    struct culet_place_run run;
    struct fill fill = {0};

    culet_buffer_varint(&fill.to, place->id);
    for (uint64_t i = 0; i < place->pages; i += run.count) {
        run = culet_place_run(place, i);
        extend_by_run(places, place, &fill, &run);
    }
    culet_buffer_varint(&fill.to, fill.length);
    culet_buffer_varint(&fill.to, fill.used);
    culet_stream_record('F', fill.to.bytes, fill.to.length);
    culet_buffer_free(&fill.to);
}

static void tell_chunks(const struct culet_place *place)
{
    struct culet_buffer record = {0};
    const uint32_t *items = (const uint32_t *)(const void *)place->chunks.bytes;

    culet_buffer_varint(&record, place->id);
    culet_buffer_varint(&record, place->first_chunk - place->start);
    for (size_t i = 0; i < place->chunks.length / sizeof *items; i++)
        culet_buffer_varint(&record, items[i]);
    culet_stream_record('C', record.bytes, record.length);
    culet_buffer_free(&record);
}

/* The stretch that was noted last is over. */
static void end_slab(struct culet_buffer *slabs, uint64_t bytes, uint64_t block)
{
    if (!bytes)
        return;
    culet_buffer_varint(slabs, bytes);
    culet_buffer_varint(slabs, block);
}

void culet_place_slab(struct culet_place *place, uint64_t bytes, uint64_t block)
{
    if (block != place->slab_block) {
        end_slab(&place->slabs, place->slab_bytes, place->slab_block);
        place->slab_bytes = 0;
        place->slab_block = block;
    }
    place->slab_bytes += bytes;
}

static void tell_slabs(const struct culet_place *place)
{
    struct culet_buffer record = {0};

    culet_buffer_varint(&record, place->id);
    if (place->slabs.length)
        culet_buffer_add(&record, place->slabs.bytes, place->slabs.length);
    end_slab(&record, place->slab_bytes, place->slab_block);
    culet_stream_record('S', record.bytes, record.length);
    culet_buffer_free(&record);
}

void culet_place_tell(const struct culet_places *places, const struct culet_place *place)
{
    tell_fill(places, place);
    if (place->chunks.length && places->chunks <= places->max_chunks)
        tell_chunks(place);
    if (place->slabs.length || place->slab_bytes)
        tell_slabs(place);
}
