/* culet_extents.h - what of culet's heap lies outside of segments. */
#pragma once

#include "culet/culet_heap.h"

/* Reads the lists of huge blocks, kept extents, descriptors and tables: in one slice unless they are very long. */
void culet_extents_list(struct culet_reading *reading, struct culet_heap *heap);

/* Makes the next listed region; returns false if none is left. The process may have run since. */
bool culet_extents_next(struct culet_reading *reading, struct culet_heap *heap);
