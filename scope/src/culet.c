/* The walker of culet's own heap: segments by slabs and runs, huge blocks, kept extents, descriptors, tables. */
#include "culet_heap.h"
#include "names.h"
#include "stream.h"

#include <string.h>

/* Times that the process is let go because it is just changing its page heap. */
#define MOST_RETRIES 200

static struct culet_heap heap;

static struct {
    uint64_t used_resident, free_bytes, free_resident, free_swapped, metadata_resident;
} total;

uint64_t culet_heap_word(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* ---- finding it ---- */

static bool culet_recognise(struct culet_scope *scope)
{
    const struct culet_mapping *library = culet_self_library(&scope->maps);
    const char *why;
    uint8_t state = 0;

    if (!library || scope->served)
        return false;
    if (!culet_self_find(scope, &heap.self, &why)) {
        culet_scope_problem(scope, "%s. Its heap is shown by pages only.", why);
        return false;
    }
    culet_memory_copy(&scope->memory, heap.self.state, &state, sizeof state);
    if (state != 1 && state != 2) /* nothing allocated yet, or left to libc's allocator */
        return false;
    heap.shapes = culet_new(heap.self.class_entries, sizeof *heap.shapes);
    if (!culet_self_shapes(scope, &heap.self, heap.shapes)) {
        culet_scope_problem(scope, "The size classes of libculet.so in the process make no sense: its heap is shown by "
                                   "pages only.");
        return false;
    }
    heap.library = library->path;
    scope->served = culet_culet_walker.name;
    return true;
}

/* ---- at rest ---- */

/* Whether no thread is in the middle of a change of the page heap. */
static bool is_at_rest(struct culet_scope *scope)
{
    uint32_t lock = 0;

    culet_memory_copy(&scope->memory, heap.self.pages_lock, &lock, sizeof lock);
    return lock == 0;
}

/* Pauses, at a moment when the page heap is whole. In live mode there may be none. */
static void pause_at_rest(struct culet_scope *scope)
{
    culet_scope_pause(scope);
    for (unsigned i = 0; scope->target.mode == CULET_SLICED && !heap.restless && !is_at_rest(scope); i++) {
        if (i == MOST_RETRIES) {
            heap.restless = true;
            culet_scope_problem(scope, "The process was always just changing its heap when it was paused: some figures "
                                       "may be off.");
            return;
        }
        culet_scope_resume(scope);
        culet_scope_pause(scope);
    }
}

bool culet_heap_breathe(struct culet_scope *scope, struct culet_heap *found)
{
    (void)found;
    if (!culet_target_due(&scope->target))
        return false;
    culet_scope_resume(scope);
    pause_at_rest(scope);
    return true;
}

/* ---- regions ---- */

struct culet_place *culet_heap_place(struct culet_scope *scope, struct culet_heap *found, const char *kind,
                                     uint64_t start, uint64_t end, bool whole)
{
    struct culet_place *place = culet_scope_place(scope, kind, CULET_HEAP_ARENA, start, end, whole);

    (void)found;
    if (!place)
        return NULL;
    if (culet_scope_states_slowly(scope, place, start, end)) {
        culet_scope_resume(scope);
        pause_at_rest(scope);
    }
    culet_names_range(&scope->maps, start, end, "malloc", NULL);
    return place;
}

void culet_heap_chunk(struct culet_scope *scope, struct culet_place *place, uint64_t bytes, enum culet_block_state state)
{
    if (bytes)
        culet_place_chunk(&scope->places, place, bytes, state);
}

/* ---- walking ---- */

static void walk_parts(struct culet_scope *scope)
{
    culet_memory_word(&scope->memory, heap.self.threads, &heap.threads);
    culet_parts_list(scope, &heap);
    while (!scope->pages.spent && culet_parts_next(scope, &heap))
        culet_heap_breathe(scope, &heap);
}

/* Entries of the table of segments that may be in use, now. */
static uint32_t ceiling(struct culet_scope *scope)
{
    uint32_t count = 0;

    culet_memory_copy(&scope->memory, heap.self.ceiling, &count, sizeof count);
    return count < heap.self.segment_entries ? count : heap.self.segment_entries;
}

static void walk_segments(struct culet_scope *scope)
{
    uint32_t known = 0;

    for (uint32_t i = 0; !scope->pages.spent; i++) {
        uint64_t at = heap.self.segments + 8 * (uint64_t)i, segment;
        if (i >= known && i >= (known = ceiling(scope)))
            return;
        if (!culet_memory_word(&scope->memory, at, &segment))
            /* None up to the end of the page. */
            i += (uint32_t)((scope->page_bytes - 1 - (at & (scope->page_bytes - 1))) / 8);
        else if (segment)
            culet_segment_walk(scope, &heap, segment);
        culet_heap_breathe(scope, &heap);
    }
}

static void culet_walk(struct culet_scope *scope)
{
    uint64_t began = culet_now();

    pause_at_rest(scope);
    walk_parts(scope);
    walk_segments(scope);
    culet_scope_resume(scope);
    heap.walk_ns = culet_now() - began;
    if (heap.strange)
        culet_scope_problem(scope, "%llu pieces of culet's heap changed while they were read: their bytes are missing in "
                                   "the figures. --stop reads all of it at one moment.",
                            (unsigned long long)heap.strange);
}

/* ---- telling ---- */

static bool is_metadata(const struct culet_place *place)
{
    return strcmp(place->kind, "metadata") == 0;
}

/* Metadata are told as far as they are in memory: tables are long and mostly never touched. */
static void add_up(const struct culet_scope *scope)
{
    for (size_t i = 0; i < scope->places.count; i++) {
        const struct culet_place *place = scope->places.all[i];
        if (place->arena != CULET_HEAP_ARENA || !place->malloc)
            continue;
        struct culet_place_sum sum = culet_place_sum(&scope->places, place);
        if (is_metadata(place)) {
            total.metadata_resident += sum.used_resident;
            continue;
        }
        total.used_resident += sum.used_resident;
        total.free_bytes += sum.free;
        total.free_resident += sum.free_resident;
        total.free_swapped += sum.free_swapped;
    }
}

static void tell_allocator(void)
{
    struct culet_json json;

    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", culet_culet_walker.name);
    culet_json_text(&json, "library", heap.library);
    culet_json_text(&json, "level", "blocks");
    culet_json_text(&json, "why", "");
    culet_json_end(&json);
}

static void tell_arena(uint64_t system_bytes)
{
    struct culet_json json;

    culet_json_begin(&json, "arena");
    culet_json_number(&json, "id", CULET_HEAP_ARENA);
    culet_json_text(&json, "name", "culet");
    culet_json_number(&json, "address", heap.self.self);
    culet_json_number(&json, "system_bytes", system_bytes);
    culet_json_number(&json, "used_bytes", heap.used_bytes);
    culet_json_number(&json, "free_bytes", system_bytes - heap.used_bytes);
    culet_json_number(&json, "top_bytes", 0);
    culet_json_number(&json, "trim_bytes", heap.trim_bytes);
    culet_json_bool(&json, "broken", false);
    culet_json_text(&json, "why", "");
    culet_json_end(&json);
}

static void tell_malloc(const struct culet_scope *scope)
{
    struct culet_json json;

    culet_json_begin(&json, "malloc");
    culet_json_number(&json, "arenas", 1);
    culet_json_number(&json, "heaps", heap.segments);
    culet_json_number(&json, "used_bytes", heap.used_bytes);
    culet_json_number(&json, "free_resident_bytes", total.free_resident);
    culet_json_number(&json, "free_returned_bytes", total.free_bytes - total.free_resident);
    culet_json_number(&json, "free_swapped_bytes", total.free_swapped);
    culet_json_number(&json, "mmapped_bytes", heap.huge_bytes);
    culet_json_number(&json, "mmapped_chunks", heap.huge_blocks);
    culet_json_number(&json, "metadata_bytes", total.metadata_resident);
    culet_json_number(&json, "tcache_bytes", heap.cached_bytes);
    culet_json_number(&json, "fastbin_bytes", 0);
    culet_json_number(&json, "kept_bytes", heap.kept_bytes);
    culet_json_number(&json, "trim_bytes", heap.trim_bytes);
    culet_json_float(&json, "pause_seconds", (double)scope->target.pauses.longest_ns / 1e9);
    culet_json_number(&json, "pauses", scope->target.pauses.count);
    culet_json_float(&json, "paused_seconds", (double)scope->target.pauses.sum_ns / 1e9);
    culet_json_float(&json, "walk_seconds", (double)heap.walk_ns / 1e9);
    culet_json_number(&json, "chunks", scope->places.chunks);
    culet_json_number(&json, "used_resident_bytes", total.used_resident);
    culet_json_number(&json, "metadata_resident_bytes", total.metadata_resident);
    culet_json_end(&json);
}

static void culet_tell(struct culet_scope *scope)
{
    uint64_t system_bytes = heap.segments * heap.self.segment_granules * heap.self.granule_bytes;

    add_up(scope);
    tell_allocator();
    tell_arena(system_bytes);
    tell_malloc(scope);
    culet_sizes_tell(&heap.sizes);
    culet_freeruns_tell(&scope->places);
}

const struct culet_walker culet_culet_walker = {
    .name = "culet", .recognise = culet_recognise, .walk = culet_walk, .tell = culet_tell};
