/* glibc_walk.h - walks the chunks of one region of an arena, slice by slice. */
#pragma once

#include "glibc/glibc_heap.h"

/* Walks from the chunk `first` on. The region is resized if it grows or shrinks meanwhile. heap_start is 0 for main's
 * regions. Pauses by itself. */
void culet_glibc_walk_region(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                             struct culet_region *region, uint64_t first, uint64_t heap_start);
