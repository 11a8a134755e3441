#include "culet/culet_heap.h"
#include "regions/region_records.h"

/* How often the process is released because its page heap is locked. */
#define MOST_RETRIES 200

static bool is_locked(struct culet_reading *reading, const struct culet_heap *heap)
{
    uint32_t lock = 0;

    culet_memory_copy(&reading->memory, heap->self.pages_lock, &lock, sizeof lock);
    return lock != 0;
}

void culet_heap_pause(struct culet_reading *reading, struct culet_heap *heap)
{
    culet_reading_pause(reading);
    for (unsigned i = 0; reading->target.mode == CULET_SLICED && !heap->always_locked && is_locked(reading, heap);
         i++) {
        if (i == MOST_RETRIES) {
            heap->always_locked = true;
            culet_reading_problem(reading, "The process was changing its heap in every pause: some figures may be "
                                           "inexact.");
            return;
        }
        culet_reading_resume(reading);
        culet_reading_pause(reading);
    }
}

bool culet_heap_yield(struct culet_reading *reading, struct culet_heap *heap)
{
    if (!culet_target_due(&reading->target))
        return false;
    culet_reading_resume(reading);
    culet_heap_pause(reading, heap);
    return true;
}

struct culet_region *culet_heap_new_region(struct culet_reading *reading, struct culet_heap *heap, const char *kind,
                                           uint64_t start, uint64_t end, bool full)
{
    struct culet_region *region = culet_reading_new_region(reading, kind, CULET_HEAP_ARENA, start, end, full);

    if (!region)
        return NULL;
    if (culet_reading_note_states_yielding(reading, region, start, end)) {
        culet_reading_resume(reading);
        culet_heap_pause(reading, heap);
    }
    culet_maps_name_range(&reading->maps, start, end, "malloc", NULL);
    return region;
}

void culet_heap_add_block(struct culet_reading *reading, struct culet_region *region, uint64_t bytes,
                          enum culet_block_state state)
{
    if (bytes)
        culet_region_add_block(&reading->regions, region, bytes, state);
}
