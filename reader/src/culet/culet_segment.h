/* culet_segment.h - one segment of culet's heap. */
#pragma once

#include "culet/culet_heap.h"

/* Walks the segment whose descriptor is at `address`. */
void culet_segment_walk(struct culet_reading *reading, struct culet_heap *heap, uint64_t address);
