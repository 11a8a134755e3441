/* The walker of musl's heap. */
#include "malloc_records.h"
#include "musl/musl_heap.h"
#include "walker.h"

/* The context may be found in a program without a C library of its own: one that is linked statically. */
static bool musl_recognize(struct culet_reading *reading, void *context)
{
    struct culet_musl *heap = context;

    if (reading->active_malloc || (reading->libc && !reading->libc_is_musl))
        return false;
    heap->library = reading->libc ? reading->libc : "";
    if (!culet_musl_find(reading, heap, reading->libc ? reading->libc : reading->program)) {
        if (!reading->libc)
            return false;
        heap->lost = true;
        reading->malloc_by_pages = culet_musl_walker.name;
    }
    reading->active_malloc = culet_musl_walker.name;
    return true;
}

static void musl_walk(struct culet_reading *reading, void *context)
{
    struct culet_musl *heap = context;

    if (heap->lost)
        return;
    culet_reading_pause(reading);
    culet_musl_groups_read(reading, heap);
    culet_musl_walk_areas(reading, heap);
    culet_musl_walk_groups(reading, heap);
    culet_reading_resume(reading);
    if (heap->unreadable)
        culet_reading_problem(reading, "A part of the metadata of musl's heap is in swap: the blocks that it describes "
                                       "are missing in the figures.");
    if (heap->inconsistent)
        culet_reading_problem(reading,
                              "%llu parts of musl's heap changed while they were read: their bytes are missing in the "
                              "figures. --stop reads the whole heap in one pause.",
                              (unsigned long long)heap->inconsistent);
}

/* ---- writing ---- */

static void musl_write(struct culet_reading *reading, void *context)
{
    const struct culet_musl *heap = context;
    struct culet_arena_record arena = {.id = CULET_MUSL_ARENA,
                                       .name = "musl",
                                       .address = heap->context,
                                       .system_bytes = heap->system_bytes,
                                       .used_bytes = heap->used_bytes};
    struct culet_malloc_record total = {
        .heaps = heap->heaps, .mmapped_bytes = heap->large_bytes, .mmapped_chunks = heap->large_blocks};

    culet_allocator_record_write(&(struct culet_allocator_record){
        .name = culet_musl_walker.name,
        .library = heap->library,
        .by_pages = heap->lost,
        .why = heap->lost
                   ? "musl's heap was not found (it is read from musl 1.2.1 on): unexplained anonymous memory is "
                     "attributed to it, page by page."
                   : ""});
    if (heap->lost)
        return;
    culet_single_arena_write(&total, &arena, reading);
    culet_histogram_write(&heap->sizes);
}

const struct culet_walker culet_musl_walker = {.name = "musl",
                                               .context_bytes = sizeof(struct culet_musl),
                                               .recognize = musl_recognize,
                                               .walk = musl_walk,
                                               .write = musl_write};
