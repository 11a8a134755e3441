#define _GNU_SOURCE
#include "glibc.h"

#include "../format.h"
#include "complain.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths of runs of free pages: exact up to 16, then by powers of two. */
#define RUN_EXACT 16u
#define RUN_BUCKETS (RUN_EXACT + 44u)

struct totals {
    struct culet_glibc_sum sum;
    uint32_t heaps;
    struct culet_place_sum places;
    uint64_t mmapped_resident;
};

static void tell_allocator(const struct culet_scope *scope, const struct culet_glibc *heap)
{
    struct culet_json json;

    if (strcmp(scope->served, "glibc") != 0)
        return;
    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", "glibc");
    culet_json_text(&json, "library", heap->library);
    culet_json_text(&json, "level", "blocks");
    culet_json_text(&json, "why", "");
    culet_json_end(&json);
}

static void tell_arena(const struct culet_glibc_arena *arena)
{
    struct culet_json json;
    char name[32] = "main";
    uint64_t free_bytes = arena->sum.free + arena->sum.fastbin + arena->sum.tcache;

    if (arena->id)
        snprintf(name, sizeof name, "thread %u", arena->id);
    culet_json_begin(&json, "arena");
    culet_json_number(&json, "id", arena->id);
    culet_json_text(&json, "name", name);
    culet_json_number(&json, "address", arena->address);
    culet_json_number(&json, "system_bytes", arena->system_bytes);
    culet_json_number(&json, "used_bytes", arena->sum.used + arena->sum.other);
    culet_json_number(&json, "free_bytes", free_bytes);
    culet_json_number(&json, "top_bytes", arena->top_bytes);
    culet_json_number(&json, "trim_bytes", arena->sum.trim);
    culet_json_bool(&json, "broken", arena->broken);
    culet_json_text(&json, "why", arena->why);
    culet_json_end(&json);
    if (arena->broken)
        culet_stream_problem("The walk of the %s arena (%s) was stopped: %s. What lies behind it in this heap is shown "
                             "as unknown.", arena->id ? "thread" : "main", name, arena->why);
}

static void add(struct culet_place_sum *to, const struct culet_place_sum *one)
{
    to->used += one->used;
    to->used_resident += one->used_resident;
    to->free += one->free;
    to->free_resident += one->free_resident;
    to->free_swapped += one->free_swapped;
    to->other += one->other;
    to->other_resident += one->other_resident;
}

static struct totals add_up(const struct culet_scope *scope, const struct culet_glibc *heap)
{
    struct totals totals = {0};

    for (size_t i = 0; i < heap->arena_count; i++) {
        const struct culet_glibc_arena *arena = &heap->arenas[i];
        totals.sum.used += arena->sum.used;
        totals.sum.free += arena->sum.free;
        totals.sum.tcache += arena->sum.tcache;
        totals.sum.fastbin += arena->sum.fastbin;
        totals.sum.other += arena->sum.other;
        totals.sum.trim += arena->sum.trim;
        totals.sum.chunks += arena->sum.chunks;
        totals.heaps += arena->heaps;
    }
    for (size_t i = 0; i < scope->places.count; i++) {
        const struct culet_place *place = scope->places.all[i];
        bool mmapped = strcmp(place->kind, "mmapped") == 0;
        if (!mmapped && strcmp(place->kind, "main") != 0 && strcmp(place->kind, "heap") != 0)
            continue;
        struct culet_place_sum sum = culet_place_sum(&scope->places, place);
        add(&totals.places, &sum);
    }
    return totals;
}

static void tell_malloc(const struct culet_scope *scope, const struct culet_glibc *heap, const struct totals *totals)
{
    const struct culet_target *target = &scope->target;
    struct culet_json json;

    culet_json_begin(&json, "malloc");
    culet_json_number(&json, "arenas", heap->arena_count);
    culet_json_number(&json, "heaps", totals->heaps);
    culet_json_number(&json, "used_bytes", totals->sum.used + totals->sum.other);
    culet_json_number(&json, "free_resident_bytes", totals->places.free_resident);
    culet_json_number(&json, "free_returned_bytes", totals->places.free - totals->places.free_resident);
    culet_json_number(&json, "free_swapped_bytes", totals->places.free_swapped);
    culet_json_number(&json, "mmapped_bytes", heap->found_mmapped_bytes);
    culet_json_number(&json, "mmapped_chunks", heap->found_mmaps);
    culet_json_number(&json, "metadata_bytes", totals->sum.other);
    culet_json_number(&json, "tcache_bytes", totals->sum.tcache);
    culet_json_number(&json, "fastbin_bytes", totals->sum.fastbin);
    culet_json_number(&json, "trim_bytes", totals->sum.trim);
    culet_json_float(&json, "pause_seconds", (double)target->longest_ns / 1e9);
    culet_json_number(&json, "pauses", target->pauses);
    culet_json_float(&json, "paused_seconds", (double)target->paused_ns / 1e9);
    culet_json_float(&json, "walk_seconds", (double)heap->walk_ns / 1e9);
    culet_json_number(&json, "chunks", totals->sum.chunks + heap->found_mmaps);
    culet_json_number(&json, "used_resident_bytes", totals->places.used_resident);
    culet_json_number(&json, "metadata_resident_bytes", totals->places.other_resident);
    culet_json_end(&json);
}

static void tell_sizes(const struct culet_glibc *heap)
{
    struct culet_buffer buckets = {0};
    struct culet_json json;
    const char *comma = "";

    culet_buffer_byte(&buckets, '[');
    for (unsigned i = 0; i < CULET_GLIBC_EXACT + CULET_GLIBC_EIGHTHS; i++) {
        const struct culet_glibc_sizes *sizes = &heap->sizes;
        if (!sizes->count[0][i] && !sizes->count[1][i])
            continue;
        culet_buffer_print(&buckets, "%s[%llu,%llu,%llu,%llu,%llu]", comma,
                           (unsigned long long)culet_glibc_bucket_bytes(i), (unsigned long long)sizes->count[0][i],
                           (unsigned long long)sizes->bytes[0][i], (unsigned long long)sizes->count[1][i],
                           (unsigned long long)sizes->bytes[1][i]);
        comma = ",";
    }
    culet_buffer_print(&buckets, "]%c", 0);
    culet_json_begin(&json, "sizes");
    culet_json_raw(&json, "buckets", (char *)buckets.bytes);
    culet_json_end(&json);
    culet_buffer_free(&buckets);
}

struct runs {
    uint64_t count[RUN_BUCKETS], resident[RUN_BUCKETS];
};

static void note_run(struct runs *runs, uint64_t pages, uint64_t resident)
{
    if (!pages)
        return;
    unsigned bucket = pages <= RUN_EXACT ? (unsigned)pages - 1
                                         : RUN_EXACT + (unsigned)(63 - __builtin_clzll(pages)) - 4;
    runs->count[bucket]++;
    runs->resident[bucket] += resident;
}

/* Whether page `index` of the region has nothing but free bytes. */
static bool wholly_free(const struct culet_scope *scope, const struct culet_place *place, uint32_t index, size_t *other)
{
    uint64_t start = ((place->start >> scope->places.shift) + index) << scope->places.shift;
    uint64_t end = start + scope->page_bytes;

    if (place->used[index] || start < place->start || end > place->end)
        return false;
    while (*other < place->others && place->other[*other].end <= start)
        ++*other;
    return *other == place->others || place->other[*other].start >= end;
}

static void count_runs(const struct culet_scope *scope, const struct culet_place *place, struct runs *runs)
{
    uint64_t pages = 0, resident = 0;
    size_t other = 0;

    for (uint32_t i = 0; i < place->pages; i++) {
        if (wholly_free(scope, place, i, &other)) {
            pages++;
            resident += place->states[i] & CULET_PAGE_PRESENT ? 1 : 0;
            continue;
        }
        note_run(runs, pages, resident);
        pages = resident = 0;
    }
    note_run(runs, pages, resident);
}

static void tell_runs(const struct culet_scope *scope)
{
    struct culet_buffer buckets = {0};
    struct culet_json json;
    struct runs *runs = culet_new(1, sizeof *runs);
    const char *comma = "";

    for (size_t i = 0; i < scope->places.count; i++)
        if (!scope->places.all[i]->whole && (strcmp(scope->places.all[i]->kind, "main") == 0 ||
                                             strcmp(scope->places.all[i]->kind, "heap") == 0))
            count_runs(scope, scope->places.all[i], runs);
    culet_buffer_byte(&buckets, '[');
    for (unsigned i = 0; i < RUN_BUCKETS; i++) {
        if (!runs->count[i])
            continue;
        uint64_t pages = i < RUN_EXACT ? i + 1 : i == RUN_EXACT ? RUN_EXACT + 1 : UINT64_C(1) << (i - RUN_EXACT + 4);
        culet_buffer_print(&buckets, "%s[%llu,%llu,%llu]", comma, (unsigned long long)pages,
                           (unsigned long long)runs->count[i], (unsigned long long)runs->resident[i]);
        comma = ",";
    }
    culet_buffer_print(&buckets, "]%c", 0);
    culet_json_begin(&json, "freeruns");
    culet_json_raw(&json, "buckets", (char *)buckets.bytes);
    culet_json_end(&json);
    culet_buffer_free(&buckets);
    free(runs);
}

static void tell_doubts(const struct culet_glibc *heap)
{
    if (!heap->sbrk_field)
        culet_stream_problem("glibc's own count of mappings was not found: large blocks may be missing.");
    else if (heap->found_mmaps != heap->n_mmaps || heap->found_mmapped_bytes != heap->mmapped_bytes)
        culet_stream_problem("Of %llu large blocks with a mapping of their own (%llu bytes) %llu (%llu bytes) were "
                             "found.", (unsigned long long)heap->n_mmaps, (unsigned long long)heap->mmapped_bytes,
                             (unsigned long long)heap->found_mmaps, (unsigned long long)heap->found_mmapped_bytes);
    for (size_t i = 0; i < heap->arena_count; i++) {
        const struct culet_glibc_arena *arena = &heap->arenas[i];
        const struct culet_glibc_sum *sum = &arena->sum;
        uint64_t found = sum->used + sum->free + sum->tcache + sum->fastbin + sum->other;
        if (!arena->broken && arena->top && found != arena->system_bytes)
            culet_stream_problem("Arena %u has %llu bytes of the system, of which %llu were found.", arena->id,
                                 (unsigned long long)arena->system_bytes, (unsigned long long)found);
    }
}

void culet_glibc_tell(struct culet_scope *scope, const struct culet_glibc *heap)
{
    struct totals totals = add_up(scope, heap);

    tell_allocator(scope, heap);
    for (size_t i = 0; i < heap->arena_count; i++)
        tell_arena(&heap->arenas[i]);
    tell_malloc(scope, heap, &totals);
    tell_sizes(heap);
    tell_runs(scope);
    tell_doubts(heap);
}
