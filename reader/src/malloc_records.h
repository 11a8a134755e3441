/* malloc_records.h - the records "allocator", "arena" and "malloc", which all walkers of malloc's heaps write. */
#pragma once

#include "reading.h"

struct culet_allocator_record {
    const char *name, *library, *why; /* why: "" if all blocks are known */
    bool by_pages;
};

struct culet_arena_record {
    const char *name, *why; /* why: it is broken; NULL: it is not */
    uint32_t id;
    uint64_t address, system_bytes, used_bytes, free_bytes, top_bytes, trim_bytes;
};

struct culet_malloc_record {
    uint64_t arenas, heaps, used_bytes, free_bytes, free_resident_bytes, free_swapped_bytes, mmapped_bytes,
        mmapped_chunks, metadata_bytes, tcache_bytes, tcache_mmapped_bytes, fastbin_bytes, kept_bytes, trim_bytes,
        chunks, used_resident_bytes, metadata_resident_bytes;
    bool has_kept; /* kept_bytes is written */
};

/* Adds free bytes, and what is resident. Regions of metadata count as far as they are in memory: tables are long and mostly
 * never touched. Returns the bytes between and in blocks that are metadata, which are not added. */
uint64_t culet_malloc_record_add(struct culet_malloc_record *record, const struct culet_region *region);

void culet_allocator_record_write(const struct culet_allocator_record *record);
void culet_arena_record_write(const struct culet_arena_record *record);
void culet_malloc_record_write(const struct culet_malloc_record *record, const struct culet_reading *reading);

/* Writes both records of a heap with one arena, which has the used bytes and all metadata. Sets the sums that follow from
 * the arena and the regions. */
void culet_single_arena_write(struct culet_malloc_record *record, struct culet_arena_record *arena,
                              const struct culet_reading *reading);
