#include "scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void culet_scope_pause(struct culet_scope *scope)
{
    culet_target_pause(&scope->target);
    /* The thread by which it was read may have ended. */
    scope->memory.pid = scope->target.pid;
    culet_pages_forget(&scope->pages);
    culet_memory_forget(&scope->memory);
    scope->later_ns = 0;
}

void culet_scope_resume(struct culet_scope *scope)
{
    culet_target_resume(&scope->target);
}

bool culet_scope_breathe(struct culet_scope *scope)
{
    if (!culet_target_due(&scope->target))
        return false;
    culet_scope_resume(scope);
    culet_scope_pause(scope);
    return true;
}

/* ---- what is mapped ---- */

/* In live mode there is no pause that ends what is known: it lasts that long. */
#define LATER_NS UINT64_C(20000000)

/* A list of so many mappings takes longer to read than a pause should: it is read anew only so often. */
#define LONG_LIST 8192u
#define LONG_LIST_READS 4u

static void read_later(struct culet_scope *scope)
{
    uint64_t now = culet_now();

    if (scope->later_ns && (scope->target.mode != CULET_LIVE || now - scope->later_ns < LATER_NS))
        return;
    if (scope->maps.count > LONG_LIST && scope->later_reads == LONG_LIST_READS)
        return;
    culet_maps_free(&scope->later);
    if (!culet_maps_read(&scope->later, scope->target.pid, false))
        culet_maps_free(&scope->later);
    scope->later_reads++;
    scope->later_ns = now;
}

uint64_t culet_scope_mapped(struct culet_scope *scope, uint64_t address, uint64_t wanted)
{
    uint64_t end = culet_maps_end(&scope->maps, address);

    if (!end || end < wanted) {
        read_later(scope);
        end = culet_maps_end(&scope->later, address);
    }
    return end && end >= wanted ? end : 0;
}

/* Any mappings will do, but side by side. */
static bool covers(const struct culet_maps *maps, uint64_t start, uint64_t end)
{
    const struct culet_mapping *mapping;

    while (start < end && (mapping = culet_maps_at(maps, start)))
        start = mapping->end;
    return start >= end;
}

struct culet_place *culet_scope_place(struct culet_scope *scope, const char *kind, uint32_t arena, uint64_t start,
                                      uint64_t end, bool whole)
{
    if (start >= end || (start | end) % 8)
        return NULL;
    if (!covers(&scope->maps, start, end)) {
        read_later(scope);
        if (!covers(&scope->later, start, end))
            return NULL;
    }
    return culet_place_new(&scope->places, kind, arena, start, end, whole);
}

/* ---- what is in memory ---- */

static bool note_states(struct culet_scope *scope, struct culet_place *place, uint64_t from, uint64_t to, bool slowly)
{
    uint8_t states[CULET_PAGES_WINDOW];
    unsigned shift = scope->pages.shift;
    bool breathed = false;

    if (to > place->end)
        to = place->end;
    if (to <= from)
        return false;
    uint64_t page = from >> shift, end = ((to - 1) >> shift) + 1;
    while (page < end) {
        if (end - page > CULET_PAGES_WINDOW && (page = culet_pages_next(&scope->pages, page, end)) == end)
            break;
        size_t count = end - page < CULET_PAGES_WINDOW ? (size_t)(end - page) : CULET_PAGES_WINDOW;
        culet_pages_copy(&scope->pages, page, count, states);
        culet_place_set_states(&scope->places, place, page, count, states);
        page += count;
        if (slowly && page < end)
            breathed |= culet_scope_breathe(scope);
    }
    return breathed;
}

void culet_scope_states(struct culet_scope *scope, struct culet_place *place, uint64_t from, uint64_t to)
{
    note_states(scope, place, from, to, false);
}

bool culet_scope_states_slowly(struct culet_scope *scope, struct culet_place *place, uint64_t from, uint64_t to)
{
    return note_states(scope, place, from, to, true);
}

void culet_scope_problem(struct culet_scope *scope, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (size_t at = 0; at < scope->problems.length; at += strlen((char *)scope->problems.bytes + at) + 1)
        if (strcmp((char *)scope->problems.bytes + at, sentence) == 0)
            return;
    culet_buffer_add(&scope->problems, sentence, strlen(sentence) + 1);
}
