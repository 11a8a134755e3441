#pragma once

#include "musl/musl_heap.h"

/* Makes regions of the areas, and of every group with the groups in its slots. */
void culet_musl_walk_areas(struct culet_reading *reading, struct culet_musl *heap);
void culet_musl_walk_groups(struct culet_reading *reading, struct culet_musl *heap);
