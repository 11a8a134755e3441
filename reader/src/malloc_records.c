#include "malloc_records.h"

#include "output/json.h"

#include <string.h>

void culet_allocator_record_write(const struct culet_allocator_record *record)
{
    struct culet_json json;

    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", record->name);
    culet_json_text(&json, "library", record->library);
    culet_json_text(&json, "level", record->by_pages ? "pages" : "blocks");
    culet_json_text(&json, "why", record->why);
    culet_json_end(&json);
}

void culet_arena_record_write(const struct culet_arena_record *record)
{
    struct culet_json json;

    culet_json_begin(&json, "arena");
    culet_json_number(&json, "id", record->id);
    culet_json_text(&json, "name", record->name);
    culet_json_number(&json, "address", record->address);
    culet_json_number(&json, "system_bytes", record->system_bytes);
    culet_json_number(&json, "used_bytes", record->used_bytes);
    culet_json_number(&json, "free_bytes", record->free_bytes);
    culet_json_number(&json, "top_bytes", record->top_bytes);
    culet_json_number(&json, "trim_bytes", record->trim_bytes);
    culet_json_raw(&json, "broken", record->why ? "true" : "false");
    culet_json_text(&json, "why", record->why ? record->why : "");
    culet_json_end(&json);
}

uint64_t culet_malloc_record_add(struct culet_malloc_record *record, const struct culet_region *region)
{
    struct culet_region_sum sum = culet_region_sum(region);

    if (strcmp(region->kind, "metadata") == 0) {
        record->metadata_bytes += sum.used_resident;
        record->metadata_resident_bytes += sum.used_resident;
        return 0;
    }
    record->free_bytes += sum.free;
    record->free_resident_bytes += sum.free_resident;
    record->free_swapped_bytes += sum.free_swapped;
    record->used_resident_bytes += sum.used_resident;
    record->metadata_resident_bytes += sum.overhead_resident;
    return sum.overhead;
}

void culet_malloc_record_write(const struct culet_malloc_record *record, const struct culet_reading *reading)
{
    const struct culet_pauses *pauses = &reading->target.pauses;
    struct culet_json json;

    culet_json_begin(&json, "malloc");
    culet_json_number(&json, "arenas", record->arenas);
    culet_json_number(&json, "heaps", record->heaps);
    culet_json_number(&json, "used_bytes", record->used_bytes);
    culet_json_number(&json, "free_resident_bytes", record->free_resident_bytes);
    culet_json_number(&json, "free_returned_bytes", record->free_bytes - record->free_resident_bytes);
    culet_json_number(&json, "free_swapped_bytes", record->free_swapped_bytes);
    culet_json_number(&json, "mmapped_bytes", record->mmapped_bytes);
    culet_json_number(&json, "mmapped_chunks", record->mmapped_chunks);
    culet_json_number(&json, "metadata_bytes", record->metadata_bytes);
    culet_json_number(&json, "tcache_bytes", record->tcache_bytes);
    culet_json_number(&json, "tcache_mmapped_bytes", record->tcache_mmapped_bytes);
    culet_json_number(&json, "fastbin_bytes", record->fastbin_bytes);
    if (record->has_kept)
        culet_json_number(&json, "kept_bytes", record->kept_bytes);
    culet_json_number(&json, "trim_bytes", record->trim_bytes);
    culet_json_seconds(&json, "pause_seconds", pauses->longest_ns);
    culet_json_number(&json, "pauses", pauses->count);
    culet_json_seconds(&json, "paused_seconds", pauses->sum_ns);
    culet_json_seconds(&json, "walk_seconds", reading->malloc_walk_ns);
    culet_json_number(&json, "chunks", record->chunks);
    culet_json_number(&json, "used_resident_bytes", record->used_resident_bytes);
    culet_json_number(&json, "metadata_resident_bytes", record->metadata_resident_bytes);
    culet_json_end(&json);
}

void culet_single_arena_write(struct culet_malloc_record *record, struct culet_arena_record *arena,
                              const struct culet_reading *reading)
{
    arena->free_bytes = arena->system_bytes - arena->used_bytes;
    culet_arena_record_write(arena);
    record->arenas = 1;
    record->used_bytes = arena->used_bytes;
    record->trim_bytes = arena->trim_bytes;
    record->chunks = reading->regions.block_count;
    for (size_t i = 0; i < reading->regions.count; i++) {
        const struct culet_region *region = reading->regions.all[i];
        if (region->arena == arena->id && region->malloc)
            record->metadata_bytes += culet_malloc_record_add(record, region);
    }
    culet_malloc_record_write(record, reading);
}
