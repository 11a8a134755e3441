#include "reading.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void culet_reading_pause(struct culet_reading *reading)
{
    culet_target_pause(&reading->target);
    /* The thread used for reading may have ended. */
    reading->memory.pid = reading->target.pid;
    culet_pages_forget(&reading->pages);
    culet_memory_forget(&reading->memory);
    reading->fresh_ns = 0;
}

void culet_reading_resume(struct culet_reading *reading)
{
    culet_target_resume(&reading->target);
}

bool culet_reading_yield(struct culet_reading *reading)
{
    if (!culet_target_due(&reading->target))
        return false;
    culet_reading_resume(reading);
    culet_reading_pause(reading);
    return true;
}

/* ---- what is mapped now ---- */

/* In live mode, where no pause ends, the list is this long valid. */
#define FRESH_NS UINT64_C(20000000)

/* A list of so many mappings takes longer to read than a pause should: it is read again only a few times. */
#define LONG_LIST 8192u
#define LONG_LIST_READS 4u

static void refresh_maps(struct culet_reading *reading)
{
    uint64_t now = culet_now();

    if (reading->fresh_ns && (reading->target.mode != CULET_LIVE || now - reading->fresh_ns < FRESH_NS))
        return;
    if (reading->maps.count > LONG_LIST && reading->fresh_reads == LONG_LIST_READS)
        return;
    culet_maps_free(&reading->fresh_maps);
    if (!culet_maps_read(&reading->fresh_maps, reading->target.pid, false))
        culet_maps_free(&reading->fresh_maps);
    reading->fresh_reads++;
    reading->fresh_ns = now;
}

/* The end of the adjacent mappings from the one at this address on, as long as all can be a heap; else the end of that
 * mapping. 0: nothing is mapped. */
static uint64_t end_at(const struct culet_maps *maps, uint64_t address)
{
    const struct culet_mapping *mapping = culet_maps_at(maps, address), *past = maps->all + maps->count;

    if (!mapping)
        return 0;
    while (culet_mapping_is_heap_like(mapping) && mapping + 1 < past && mapping[1].start == mapping->end &&
           culet_mapping_is_heap_like(mapping + 1))
        mapping++;
    return mapping->end;
}

uint64_t culet_reading_mapped_end(struct culet_reading *reading, uint64_t address, uint64_t wanted)
{
    uint64_t end = end_at(&reading->maps, address);

    if (!end || end < wanted) {
        refresh_maps(reading);
        end = end_at(&reading->fresh_maps, address);
    }
    return end && end >= wanted ? end : 0;
}

/* Whether adjacent mappings of any kind cover start..end. */
static bool covers(const struct culet_maps *maps, uint64_t start, uint64_t end)
{
    const struct culet_mapping *mapping;

    while (start < end && (mapping = culet_maps_at(maps, start)))
        start = mapping->end;
    return start >= end;
}

struct culet_region *culet_reading_new_region(struct culet_reading *reading, const char *kind, uint32_t arena,
                                              uint64_t start, uint64_t end, bool full)
{
    if (start >= end || (start | end) % 8)
        return NULL;
    if (!covers(&reading->maps, start, end)) {
        refresh_maps(reading);
        if (!covers(&reading->fresh_maps, start, end))
            return NULL;
    }
    return culet_region_new(&reading->regions, kind, arena, start, end, full);
}

/* ---- page states ---- */

static bool note_states(struct culet_reading *reading, struct culet_region *region, uint64_t from, uint64_t to,
                        bool yielding)
{
    uint8_t states[CULET_PAGES_WINDOW];
    unsigned shift = reading->pages.shift;
    bool yielded = false;

    if (to > region->end)
        to = region->end;
    if (to <= from)
        return false;
    uint64_t page = from >> shift, end = ((to - 1) >> shift) + 1;
    while (page < end) {
        if (end - page > CULET_PAGES_WINDOW && (page = culet_pages_next(&reading->pages, page, end)) == end)
            break;
        size_t count = end - page < CULET_PAGES_WINDOW ? (size_t)(end - page) : CULET_PAGES_WINDOW;
        culet_pages_copy(&reading->pages, page, count, states);
        culet_region_set_states(region, page, count, states);
        page += count;
        if (yielding && page < end)
            yielded |= culet_reading_yield(reading);
    }
    return yielded;
}

void culet_reading_note_states(struct culet_reading *reading, struct culet_region *region, uint64_t from, uint64_t to)
{
    note_states(reading, region, from, to, false);
}

bool culet_reading_note_states_yielding(struct culet_reading *reading, struct culet_region *region, uint64_t from,
                                        uint64_t to)
{
    return note_states(reading, region, from, to, true);
}

void culet_reading_problem(struct culet_reading *reading, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (size_t at = 0; at < reading->problems.length; at += strlen((char *)reading->problems.bytes + at) + 1)
        if (strcmp((char *)reading->problems.bytes + at, sentence) == 0)
            return;
    culet_buffer_add(&reading->problems, sentence, strlen(sentence) + 1);
}
