#pragma once

#include "musl/musl_heap.h"

/* Lists the areas, the metas in them, and their groups. A group whose memory does not lead back to its meta is left
 * out, and counted as inconsistent. */
void culet_musl_groups_read(struct culet_reading *reading, struct culet_musl *heap);
