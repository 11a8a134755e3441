#define _GNU_SOURCE
#include "glibc/glibc_heap.h"

#include "output/json.h"
#include "malloc_records.h"

#include <stdio.h>
#include <string.h>

static void write_allocator(const struct culet_glibc *heap)
{
    culet_allocator_record_write(&(struct culet_allocator_record){
        .name = "glibc",
        .library = heap->library,
        .by_pages = heap->lost,
        .why = heap->lost ? "glibc's arenas were not found: unexplained anonymous memory is attributed to its heap, "
                            "page by page."
                          : ""});
}

static void write_arena(const struct culet_glibc_arena *arena)
{
    char name[32] = "main";

    if (arena->id)
        snprintf(name, sizeof name, "thread %u", arena->id);
    culet_arena_record_write(
        &(struct culet_arena_record){.id = arena->id,
                                     .name = name,
                                     .why = arena->broken ? arena->why : NULL,
                                     .address = arena->address,
                                     .system_bytes = arena->system_bytes,
                                     .used_bytes = arena->sum.used + arena->sum.overhead,
                                     .free_bytes = arena->sum.free + arena->sum.fastbin + arena->sum.tcache,
                                     .top_bytes = arena->top_bytes,
                                     .trim_bytes = arena->sum.trim});
    if (arena->broken)
        culet_json_problem("The walk of the %s arena (%s) was stopped: %s. The rest of this heap is reported as "
                           "unknown.",
                           arena->id ? "thread" : "main", name, arena->why);
}

static void add_arena(struct culet_malloc_record *total, const struct culet_glibc_arena *arena)
{
    total->arenas++;
    total->heaps += arena->heaps;
    total->used_bytes += arena->sum.used + arena->sum.overhead;
    total->metadata_bytes += arena->sum.overhead;
    total->tcache_bytes += arena->sum.tcache;
    total->fastbin_bytes += arena->sum.fastbin;
    total->trim_bytes += arena->sum.trim;
    total->chunks += arena->sum.chunks;
}

static bool is_of_glibc(const struct culet_region *region)
{
    return strcmp(region->kind, "mmapped") == 0 || strcmp(region->kind, "main") == 0 ||
           strcmp(region->kind, "heap") == 0;
}

static void write_malloc(const struct culet_reading *reading, const struct culet_glibc *heap)
{
    struct culet_malloc_record total = {.mmapped_bytes = heap->found_mmapped_bytes,
                                        .mmapped_chunks = heap->found_mmaps,
                                        .tcache_bytes = heap->cached_mmapped_bytes,
                                        .tcache_mmapped_bytes = heap->cached_mmapped_bytes,
                                        .chunks = heap->found_mmaps};

    for (size_t i = 0; i < heap->arena_count; i++)
        add_arena(&total, &heap->arenas[i]);
    for (size_t i = 0; i < reading->regions.count; i++) {
        const struct culet_region *region = reading->regions.all[i];
        if (is_of_glibc(region))
            (void)culet_malloc_record_add(&total, region); /* the arenas have the metadata */
    }
    culet_malloc_record_write(&total, reading);
}

static void write_problems(const struct culet_glibc *heap)
{
    if (!heap->sbrk_field)
        culet_json_problem("glibc's own count of mappings was not found: large blocks may be missing.");
    else if (!culet_glibc_mmapped_complete(heap))
        culet_json_problem("Only %llu of %llu large blocks with a mapping of their own were found (%llu of %llu "
                           "bytes).",
                           (unsigned long long)heap->found_mmaps, (unsigned long long)heap->n_mmaps,
                           (unsigned long long)heap->found_mmapped_bytes, (unsigned long long)heap->mmapped_bytes);
    for (size_t i = 0; i < heap->arena_count; i++) {
        const struct culet_glibc_arena *arena = &heap->arenas[i];
        const struct culet_glibc_sum *sum = &arena->sum;
        uint64_t found = sum->used + sum->free + sum->tcache + sum->fastbin + sum->overhead;
        if (!arena->broken && arena->top && found != arena->system_bytes)
            culet_json_problem("Of arena %u %llu bytes were found, but it has %llu bytes from the system.", arena->id,
                               (unsigned long long)found, (unsigned long long)arena->system_bytes);
    }
}

void culet_glibc_write(struct culet_reading *reading, void *context)
{
    const struct culet_glibc *heap = context;

    write_allocator(heap);
    if (heap->lost)
        return;
    for (size_t i = 0; i < heap->arena_count; i++)
        write_arena(&heap->arenas[i]);
    write_malloc(reading, heap);
    culet_histogram_write(&heap->sizes);
    write_problems(heap);
}
