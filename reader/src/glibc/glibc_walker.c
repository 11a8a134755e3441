/* The walker of glibc's heap. */
#define _GNU_SOURCE
#include "base/bytes.h"
#include "base/clock.h"
#include "glibc/glibc_heap.h"
#include "walker.h"

#include <stdlib.h>
#include <string.h>

/* The most heaps of an arena: 256 GB. */
#define MOST_HEAPS 4096u

/* Steps of culet_glibc_chain in the whole reading, in addition to one per possible chunk. */
#define CHAIN_STEPS UINT64_C(4000000)

/* ---- recognize ---- */

/* Whether there must be arenas: glibc serves malloc and has memory by brk. */
static bool must_have_arenas(const struct culet_reading *reading)
{
    return reading->libc && CULET_MAPPING_WHERE(&reading->maps, each, strcmp(each->path, "[heap]") == 0 && each->rss);
}

/* The main arena is found by the consistency of its lists, which a thread may be changing: so many tries, and five
 * times as many if there must be arenas. (A process that never allocated has none.) */
#define FIND_TRIES 12u
/* A rest between tries in live mode, where pauses give none. */
#define LIVE_REST_NS 1000000

/* Whether the function succeeds in one of so many pauses. */
static bool try_often(struct culet_reading *reading, struct culet_glibc *heap, unsigned most,
                      bool (*function)(struct culet_reading *, struct culet_glibc *))
{
    for (unsigned tries = 0; tries < most && !reading->pages.exhausted; tries++) {
        if (function(reading, heap))
            return true;
        if (reading->target.mode == CULET_LIVE)
            culet_sleep_ns(LIVE_REST_NS);
        culet_target_release(&reading->target);
        culet_reading_pause(reading);
    }
    return false;
}

/* A heap that cannot be walked is reported by pages. */
static void report_by_pages(struct culet_reading *reading, struct culet_glibc *heap)
{
    heap->lost = true;
    heap->arena_count = 0;
    heap->library = reading->libc ? reading->libc : "";
    reading->malloc_by_pages = "glibc";
    culet_reading_problem(reading, "glibc's arenas were not found, because they changed too often meanwhile or are in "
                                   "swap: try again, or with --stop.");
}

static bool glibc_recognize(struct culet_reading *reading, void *context)
{
    struct culet_glibc *heap = context;

    /* If another allocator serves malloc, an arena of glibc's is not the program's heap. */
    if (reading->active_malloc)
        return false;
    bool must = must_have_arenas(reading);
    if (!try_often(reading, heap, must ? 5 * FIND_TRIES : FIND_TRIES, culet_glibc_find)) {
        if (!must)
            return false;
        report_by_pages(reading, heap);
    }
    reading->active_malloc = culet_glibc_walker.name;
    return true;
}

/* ---- the main arena ---- */

static void name_heap(struct culet_reading *reading, uint64_t address, const char *label, unsigned id)
{
    struct culet_mapping *mapping = culet_maps_at(&reading->maps, address);

    if (mapping)
        culet_mapping_name(mapping, "malloc", label, id);
}

/* A region of an arena; if there cannot be one, NULL, and the arena is broken. */
static struct culet_region *new_region(struct culet_reading *reading, struct culet_glibc_arena *arena, const char *kind,
                                       uint64_t start, uint64_t end)
{
    struct culet_region *region = culet_reading_new_region(reading, kind, arena->id, start, end, false);

    if (!region)
        culet_glibc_break(arena, "at 0x%llx: the heap is not mapped, or overlaps another", (unsigned long long)start);
    return region;
}

/* Walks a contiguous part of main's heap, from `start` to its top, or else to `end`. */
static struct culet_region *walk_main(struct culet_reading *reading, struct culet_glibc *heap,
                                      struct culet_glibc_arena *arena, uint64_t start, uint64_t end)
{
    culet_glibc_arena_top_end(reading, arena, start, &end);
    struct culet_region *region = new_region(reading, arena, "main", start, end);
    if (!region)
        return NULL;
    culet_glibc_walk_region(reading, heap, arena, region, (start + 15) & ~UINT64_C(15), 0);
    name_heap(reading, start, "heap of the main arena", 0);
    arena->found_bytes += region->end - start;
    return region;
}

static void walk_brk(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena)
{
    uint64_t base = culet_glibc_parameters_read(reading, heap);
    const struct culet_mapping *mapping;

    culet_glibc_arena_refresh(reading, heap, arena);
    mapping = culet_maps_at(&reading->maps, base);
    if (base && base % 8 == 0 && mapping && strcmp(mapping->path, "[heap]") == 0)
        walk_main(reading, heap, arena, base, mapping->end);
}

/* Whether a contiguous part of main's heap begins with a chunk at the start of this page. */
static bool begins_at(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                      uint64_t at, uint64_t end)
{
    const unsigned char *header = culet_memory_at(&reading->memory, at, GLIBC_CHUNK_HEADER_BYTES);

    if (!header || culet_word_at(header) || (culet_word_at(header + 8) & GLIBC_CHUNK_FLAGS) != GLIBC_CHUNK_PREV_INUSE)
        return false;
    culet_glibc_arena_top_end(reading, arena, at, &end);
    return culet_glibc_chain(reading, heap, at, end);
}

static void walk_mapping(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                         const struct culet_mapping *mapping)
{
    const unsigned shift = reading->pages.shift;
    const uint64_t page = reading->page_bytes;

    for (uint64_t at = mapping->start; at < mapping->end && !reading->pages.exhausted;) {
        const struct culet_region *region = culet_regions_at(&reading->regions, at);
        if (!region && begins_at(reading, heap, arena, at, mapping->end))
            region = walk_main(reading, heap, arena, at, mapping->end);
        at = region ? (region->end + page - 1) & ~(page - 1) : at + page;
        culet_reading_yield(reading);
        at = culet_pages_next(&reading->pages, at >> shift, mapping->end >> shift) << shift;
    }
}

/* Where brk has failed, main's heap goes on in mappings. */
static void walk_mappings(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena)
{
    for (size_t i = 0; i < reading->maps.count && arena->found_bytes < arena->system_bytes; i++) {
        const struct culet_mapping *mapping = &reading->maps.all[i];
        if (culet_mapping_is_heap_like(mapping) && strcmp(mapping->path, "[heap]") != 0)
            walk_mapping(reading, heap, arena, mapping);
    }
}

/* ---- all arenas ---- */

/* The heaps of an arena other than main. */
static void walk_heaps(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena)
{
    uint64_t *heaps = culet_new(MOST_HEAPS, sizeof *heaps);

    culet_glibc_arena_refresh(reading, heap, arena);
    size_t count = culet_glibc_arena_heaps(reading, heap, arena, heaps, MOST_HEAPS);
    /* The oldest first: the newest may grow meanwhile. */
    for (size_t i = count; i-- > 0 && !reading->pages.exhausted;) {
        uint64_t bytes = culet_glibc_heap_bytes(reading, heap, arena, heaps[i]);
        struct culet_region *region = bytes ? new_region(reading, arena, "heap", heaps[i], heaps[i] + bytes) : NULL;
        if (!region)
            continue;
        culet_glibc_walk_region(reading, heap, arena, region, culet_glibc_heap_first_chunk(heap, arena, heaps[i]),
                                heaps[i]);
        name_heap(reading, heaps[i], "heap of arena %u", arena->id);
        culet_reading_yield(reading);
    }
    free(heaps);
}

static void walk_arena(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena)
{
    culet_reading_yield(reading);
    culet_glibc_wait_until_idle(reading, heap, arena);
    if (!culet_glibc_arena_refresh(reading, heap, arena)) {
        culet_glibc_break(arena, "its own structure cannot be read");
        return;
    }
    culet_glibc_caches_read_fastbins(reading, heap, arena);
    if (arena->address != heap->main) {
        walk_heaps(reading, heap, arena);
    } else if (arena->top) {
        walk_brk(reading, heap, arena);
        if (arena->found_bytes < arena->system_bytes)
            walk_mappings(reading, heap, arena);
    }
}

static void glibc_walk(struct culet_reading *reading, void *context)
{
    struct culet_glibc *heap = context;

    if (heap->lost)
        return;
    culet_glibc_candidates_set_bounds(&heap->candidates, &reading->maps);
    culet_reading_pause(reading);
    /* In live mode an arena may be added at this moment. */
    if (!try_often(reading, heap, FIND_TRIES, culet_glibc_arenas_read)) {
        report_by_pages(reading, heap);
        return;
    }
    culet_glibc_wait_until_idle(reading, heap, NULL);
    culet_glibc_caches_infer_links(heap);
    heap->walking = true;
    heap->chain_steps = CHAIN_STEPS + reading->maps.rss / GLIBC_CHUNK_LEAST_BYTES;
    for (size_t i = 0; i < heap->arena_count && !reading->pages.exhausted; i++)
        walk_arena(reading, heap, &heap->arenas[i]);
    culet_glibc_mmapped_find(reading, heap);
    culet_reading_resume(reading);
    culet_glibc_caches_resolve(reading, heap);
}

const struct culet_walker culet_glibc_walker = {.name = "glibc",
                                                .context_bytes = sizeof(struct culet_glibc),
                                                .recognize = glibc_recognize,
                                                .walk = glibc_walk,
                                                .write = culet_glibc_write};
