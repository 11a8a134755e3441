#include "selfmap.h"

#include "heap.h"
#include "meta.h"
#include "pagemap.h"
#include "size_class.h"
#include "huge_cache.h"

extern const struct culet_selfmap culet_selfmap;

/* Static variables of other files (selfmap_export.h); only their addresses matter. */
extern char culet_selfmap_segments[], culet_selfmap_ceiling[], culet_selfmap_huge[], culet_selfmap_extents[];
extern char culet_selfmap_extent_count[], culet_selfmap_chunks[], culet_selfmap_threads[];

/* From the linker: start and end of the zero-initialised data. */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

#define BYTES(type) sizeof(struct type)
#define AT(type, member) offsetof(struct type, member)

/* C does not let an address initialise a uint64_t; uintptr_t it does. */
#define ADDRESS(object) ((uintptr_t)(object))

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "an address has 64 bits");

/* Unused by the library: readers find it in memory. */
__attribute__((used)) const struct culet_selfmap culet_selfmap = {
    .magic = CULET_SELFMAP_MAGIC,
    .version = CULET_SELFMAP_VERSION,
    .bytes = sizeof culet_selfmap,
    .self = ADDRESS(&culet_selfmap),
    .state = ADDRESS(&culet_heap_state_now),
    .pages_lock = ADDRESS(&culet_pages_lock),
    .segments = ADDRESS(culet_selfmap_segments),
    .ceiling = ADDRESS(culet_selfmap_ceiling),
    .huge = ADDRESS(culet_selfmap_huge),
    .extents = ADDRESS(culet_selfmap_extents),
    .extent_count = ADDRESS(culet_selfmap_extent_count),
    .chunks = ADDRESS(culet_selfmap_chunks),
    .threads = ADDRESS(culet_selfmap_threads),
    .root = ADDRESS(culet_pagemap_root),
    .classes = ADDRESS(culet_classes),
    .bss = ADDRESS(__bss_start),
    .bss_end = ADDRESS(_end),
    .page_bytes = CULET_PAGE,
    .segment_pages = CULET_SEGMENT_PAGES,
    .segment_entries = CULET_SEGMENTS,
    .class_entries = CULET_CLASSES,
    .sizes = CULET_SIZES,
    .extent_entries = CULET_HUGE_CACHE_EXTENTS,
    .chunk_bytes = CULET_META_CHUNK,
    .root_entries = CULET_ROOT_ENTRIES,
    .leaf_entries = 1u << CULET_LEAF_SHIFT,
    .address_bits = CULET_ADDRESS_BITS,
    .slab_bit = CULET_ENTRY_SLAB,
    .checked_slab_bit = CULET_ENTRY_CHECKED_SLAB,
    .span_alignment = CULET_ENTRY_SPAN_ALIGNMENT,
    .unit_blocks = CULET_UNIT,
    .kind_slab = CULET_SLAB,
    .kind_large = CULET_LARGE,
    .kind_huge = CULET_HUGE,
    .segment = {BYTES(culet_segment), AT(culet_segment, base), AT(culet_segment, used), AT(culet_segment, dirty)},
    .klass = {BYTES(culet_class), AT(culet_class, size), AT(culet_class, count), AT(culet_class, pages)},
    .span = {AT(culet_span, start), AT(culet_span, kind), AT(culet_span, klass)},
    .slab = {BYTES(culet_slab), AT(culet_slab, unit), BYTES(culet_unit), AT(culet_unit, free), AT(culet_unit, remote)},
    .large = {BYTES(culet_large), AT(culet_large, bytes), AT(culet_large, ending), AT(culet_large, link.le_next)},
    .extent = {BYTES(culet_extent), AT(culet_extent, start), AT(culet_extent, bytes)},
    .chunk = {AT(culet_chunk, next)},
};

_Static_assert(AT(culet_slab, span) == 0 && AT(culet_large, span) == 0, "an span begins what it describes");
