/* The walker of culet's own heap. */
#include "culet/culet_heap.h"
#include "malloc_records.h"
#include "walker.h"

static bool culet_recognize(struct culet_reading *reading, void *context)
{
    struct culet_heap *heap = context;
    const struct culet_mapping *library = culet_selfmap_library(&reading->maps);
    const char *why;
    uint8_t state = 0;

    if (!library || reading->active_malloc)
        return false;
    if (!culet_selfmap_find(reading, &heap->self, &why)) {
        culet_reading_problem(reading, "%s. Its heap is reported by pages only.", why);
        return false;
    }
    culet_memory_copy(&reading->memory, heap->self.state, &state, sizeof state);
    if (state != 1 && state != 2) /* nothing allocated yet, or dormant */
        return false;
    heap->shapes = culet_new(heap->self.class_entries, sizeof *heap->shapes);
    if (!culet_selfmap_shapes(reading, &heap->self, heap->shapes)) {
        culet_reading_problem(reading, "The size classes of libculet.so in the process are not valid: its heap is "
                                       "reported by pages only.");
        return false;
    }
    heap->library = library->path;
    reading->active_malloc = culet_culet_walker.name;
    return true;
}

/* ---- walking ---- */

static void walk_extents(struct culet_reading *reading, struct culet_heap *heap)
{
    culet_extents_list(reading, heap);
    while (!reading->pages.exhausted && culet_extents_next(reading, heap))
        culet_heap_yield(reading, heap);
}

/* Entries of the segment table that may be in use now. */
static uint32_t table_length(struct culet_reading *reading, const struct culet_heap *heap)
{
    uint32_t count = 0;

    culet_memory_copy(&reading->memory, heap->self.ceiling, &count, sizeof count);
    return count < heap->self.segment_entries ? count : heap->self.segment_entries;
}

static void walk_segments(struct culet_reading *reading, struct culet_heap *heap)
{
    uint32_t known = 0;

    for (uint32_t i = 0; !reading->pages.exhausted; i++) {
        uint64_t at = heap->self.segments + 8 * (uint64_t)i, segment;
        if (i >= known && i >= (known = table_length(reading, heap)))
            return;
        if (!culet_memory_word(&reading->memory, at, &segment))
            /* Nothing in the rest of the page. */
            i += (uint32_t)((reading->page_bytes - 1 - (at & (reading->page_bytes - 1))) / 8);
        else if (segment)
            culet_segment_walk(reading, heap, segment);
        culet_heap_yield(reading, heap);
    }
}

static void culet_walk(struct culet_reading *reading, void *context)
{
    struct culet_heap *heap = context;

    culet_heap_pause(reading, heap);
    walk_extents(reading, heap);
    walk_segments(reading, heap);
    culet_reading_resume(reading);
    if (heap->inconsistent)
        culet_reading_problem(reading,
                              "%llu parts of culet's heap changed while they were read: their bytes are "
                              "missing in the figures. --stop reads the whole heap in one pause.",
                              (unsigned long long)heap->inconsistent);
}

/* ---- writing ---- */

static void culet_write(struct culet_reading *reading, void *context)
{
    const struct culet_heap *heap = context;
    struct culet_arena_record arena = {.id = CULET_HEAP_ARENA,
                                       .name = "culet",
                                       .address = heap->self.self,
                                       .system_bytes =
                                           heap->segments * heap->self.segment_pages * heap->self.page_bytes,
                                       .used_bytes = heap->used_bytes,
                                       .trim_bytes = heap->trim_bytes};
    struct culet_malloc_record total = {.heaps = heap->segments,
                                        .mmapped_bytes = heap->huge_bytes,
                                        .mmapped_chunks = heap->huge_blocks,
                                        .kept_bytes = heap->kept_bytes,
                                        .has_kept = true};

    culet_allocator_record_write(
        &(struct culet_allocator_record){.name = culet_culet_walker.name, .library = heap->library, .why = ""});
    culet_single_arena_write(&total, &arena, reading);
    culet_histogram_write(&heap->sizes);
}

const struct culet_walker culet_culet_walker = {.name = "culet",
                                                .context_bytes = sizeof(struct culet_heap),
                                                .recognize = culet_recognize,
                                                .walk = culet_walk,
                                                .write = culet_write};
