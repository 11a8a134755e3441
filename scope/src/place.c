#include "place.h"

#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define UNIT 8 /* of used[] */

static uint32_t pages_of(const struct culet_places *places, uint64_t start, uint64_t end)
{
    return end > start ? (uint32_t)(((end - 1) >> places->shift) - (start >> places->shift) + 1) : 0;
}

struct culet_place *culet_place_new(struct culet_places *places, const char *kind, uint32_t arena, uint64_t start,
                                    uint64_t end, bool whole)
{
    struct culet_place *place = culet_new(1, sizeof *place);

    *place = (struct culet_place){.id = (uint32_t)places->count, .arena = arena, .kind = kind, .malloc = true,
                                  .start = start, .end = end, .whole = whole, .first_chunk = start};
    place->pages = pages_of(places, start, end);
    if (!whole)
        place->used = culet_new(place->pages, sizeof *place->used);
    place->states = culet_new(place->pages, sizeof *place->states);
    places->all = culet_grow(places->all, &places->room, places->count + 1, sizeof *places->all);
    places->all[places->count++] = place;
    places->unsorted = true;
    return place;
}

void culet_place_resize(const struct culet_places *places, struct culet_place *place, uint64_t end)
{
    uint32_t pages = pages_of(places, place->start, end);
    uint32_t kept = pages < place->pages ? pages : place->pages;
    uint8_t *states = culet_new(pages, sizeof *states);

    memcpy(states, place->states, kept * sizeof *states);
    free(place->states);
    place->states = states;
    if (!place->whole) {
        uint16_t *used = culet_new(pages, sizeof *used);
        memcpy(used, place->used, kept * sizeof *used);
        free(place->used);
        place->used = used;
    }
    place->pages = pages;
    place->end = end;
}

/* Adds `sign` times the bytes of from..to to the pages' used bytes. */
static void tally(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to, int sign)
{
    uint64_t first = place->start >> places->shift;

    if (place->whole)
        return;
    if (from < place->start)
        from = place->start;
    if (to > place->end)
        to = place->end;
    while (from < to) {
        uint64_t page = from >> places->shift, end = (page + 1) << places->shift;
        if (end > to)
            end = to;
        place->used[page - first] = (uint16_t)(place->used[page - first] + sign * (int)((end - from) / UNIT));
        from = end;
    }
}

void culet_place_use(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to)
{
    tally(places, place, from, to, 1);
}

void culet_place_unuse(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to)
{
    tally(places, place, from, to, -1);
}

void culet_place_other(struct culet_place *place, uint64_t from, uint64_t to)
{
    place->other = culet_grow(place->other, &place->other_room, place->others + 1, sizeof *place->other);
    place->other[place->others++] = (struct culet_range){from, to};
}

void culet_place_keep(struct culet_place *place, uint64_t bytes, unsigned state)
{
    uint64_t units = bytes / CULET_SCOPE_UNIT;

    /* More than 16 GiB in one chunk: told in parts. */
    do {
        uint32_t part = units < (1u << 30) ? (uint32_t)units : (1u << 30) - 1;
        uint32_t item = part << 2 | state;
        culet_buffer_add(&place->chunks, &item, sizeof item);
        units -= part;
    } while (units);
}

void culet_place_set_states(const struct culet_places *places, struct culet_place *place, uint64_t first,
                            size_t count, const uint8_t *states)
{
    uint64_t base = place->start >> places->shift;

    for (size_t i = 0; i < count; i++)
        if (first + i >= base && first + i - base < place->pages)
            place->states[first + i - base] = states[i];
}

static int by_start(const void *a, const void *b)
{
    const struct culet_place *const *one = a, *const *other = b;

    return ((*one)->start > (*other)->start) - ((*one)->start < (*other)->start);
}

static bool sorted(const struct culet_places *places)
{
    for (size_t i = 1; i < places->count; i++)
        if (places->all[i]->start < places->all[i - 1]->start)
            return false;
    return true;
}

struct culet_place *culet_places_next(struct culet_places *places, uint64_t address)
{
    size_t from = 0, to = places->count;

    if (places->unsorted && !sorted(places))
        qsort(places->all, places->count, sizeof *places->all, by_start);
    places->unsorted = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (places->all[middle]->end <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from < places->count ? places->all[from] : NULL;
}

struct culet_place *culet_places_at(struct culet_places *places, uint64_t address)
{
    struct culet_place *place = culet_places_next(places, address);

    return place && place->start <= address ? place : NULL;
}

void culet_places_drop(struct culet_places *places, uint32_t id)
{
    size_t kept = 0;

    for (size_t i = 0; i < places->count; i++) {
        struct culet_place *place = places->all[i];
        if (place->id < id) {
            places->all[kept++] = place;
            continue;
        }
        places->chunks -= place->noted;
        free(place->used);
        free(place->states);
        free(place->other);
        culet_buffer_free(&place->chunks);
        culet_buffer_free(&place->slabs);
        free(place);
    }
    places->count = kept;
}

/* Bytes of page `index` that are the region's. */
static uint64_t page_share(const struct culet_places *places, const struct culet_place *place, uint32_t index)
{
    uint64_t start = ((place->start >> places->shift) + index) << places->shift;
    uint64_t end = start + (UINT64_C(1) << places->shift);

    return (end < place->end ? end : place->end) - (start > place->start ? start : place->start);
}

static uint64_t page_used(const struct culet_places *places, const struct culet_place *place, uint32_t index)
{
    return place->whole ? page_share(places, place, index) : (uint64_t)place->used[index] * UNIT;
}

/* Bytes of from..to on pages in `state`. */
static uint64_t in_state(const struct culet_places *places, const struct culet_place *place, uint64_t from,
                         uint64_t to, uint8_t state)
{
    uint64_t base = place->start >> places->shift, bytes = 0;

    while (from < to) {
        uint64_t page = from >> places->shift, end = (page + 1) << places->shift;
        if (end > to)
            end = to;
        if (place->states[page - base] & state)
            bytes += end - from;
        from = end;
    }
    return bytes;
}

struct culet_place_sum culet_place_sum(const struct culet_places *places, const struct culet_place *place)
{
    struct culet_place_sum sum = {0};
    uint64_t present = 0, swapped = 0, used_swapped = 0, other_swapped = 0;

    for (uint32_t i = 0; i < place->pages; i++) {
        uint64_t used = page_used(places, place, i);
        sum.used += used;
        if (place->states[i] & CULET_PAGE_PRESENT) {
            present += page_share(places, place, i);
            sum.used_resident += used;
        } else if (place->states[i] & CULET_PAGE_SWAPPED) {
            swapped += page_share(places, place, i);
            used_swapped += used;
        }
    }
    for (size_t i = 0; i < place->others; i++) {
        const struct culet_range *range = &place->other[i];
        sum.other += range->end - range->start;
        sum.other_resident += in_state(places, place, range->start, range->end, CULET_PAGE_PRESENT);
        other_swapped += in_state(places, place, range->start, range->end, CULET_PAGE_SWAPPED);
    }
    sum.free = place->end - place->start - sum.used - sum.other;
    sum.free_resident = present - sum.used_resident - sum.other_resident;
    sum.free_swapped = swapped - used_swapped - other_swapped;
    return sum;
}

static void tell_fill(const struct culet_places *places, const struct culet_place *place)
{
    struct culet_buffer record = {0};
    uint64_t run = 0, used = 0;

    culet_buffer_varint(&record, place->id);
    for (uint32_t i = 0; i < place->pages; i++) {
        uint64_t here = page_used(places, place, i);
        if (run && here != used) {
            culet_buffer_varint(&record, run);
            culet_buffer_varint(&record, used);
            run = 0;
        }
        used = here;
        run++;
    }
    if (run) {
        culet_buffer_varint(&record, run);
        culet_buffer_varint(&record, used);
    }
    culet_stream_record('F', record.bytes, record.length);
    culet_buffer_free(&record);
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
