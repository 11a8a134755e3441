#define _GNU_SOURCE
#include "glibc.h"

#include "../format.h"
#include "complain.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct totals {
    struct culet_glibc_sum sum;
    uint32_t heaps;
    struct culet_place_sum places;
    uint64_t mmapped_resident;
};

static void tell_allocator(const struct culet_glibc *heap)
{
    struct culet_json json;

    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", "glibc");
    culet_json_text(&json, "library", heap->library);
    culet_json_text(&json, "level", heap->lost ? "pages" : "blocks");
    culet_json_text(&json, "why",
                    heap->lost ? "Its arenas were not found: memory that nothing else accounts for is taken for its "
                                 "heap, page by page." : "");
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
    culet_json_float(&json, "pause_seconds", (double)target->pauses.longest_ns / 1e9);
    culet_json_number(&json, "pauses", target->pauses.count);
    culet_json_float(&json, "paused_seconds", (double)target->pauses.sum_ns / 1e9);
    culet_json_float(&json, "walk_seconds", (double)heap->walk_ns / 1e9);
    culet_json_number(&json, "chunks", totals->sum.chunks + heap->found_mmaps);
    culet_json_number(&json, "used_resident_bytes", totals->places.used_resident);
    culet_json_number(&json, "metadata_resident_bytes", totals->places.other_resident);
    culet_json_end(&json);
}

static void tell_doubts(const struct culet_glibc *heap)
{
    if (!heap->sbrk_field)
        culet_stream_problem("glibc's own count of mappings was not found: large blocks may be missing.");
    else if (!culet_glibc_mmapped_complete(heap))
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
    if (heap->lost) {
        tell_allocator(heap);
        return;
    }
    struct totals totals = add_up(scope, heap);

    tell_allocator(heap);
    for (size_t i = 0; i < heap->arena_count; i++)
        tell_arena(&heap->arenas[i]);
    tell_malloc(scope, heap, &totals);
    culet_sizes_tell(&heap->sizes);
    culet_freeruns_tell(&scope->places);
    tell_doubts(heap);
}
