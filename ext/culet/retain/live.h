/* retain/live.h - the objects of this process as a graph.
 *
 * In a forked copy of the process: GC is off, no other thread runs, and no Ruby code may run. */
#pragma once

#include "retain/live_heap.h"

/* Why the objects of this Ruby cannot be walked, or NULL. In the process itself. May raise. */
const char *culet_live_obstacle(void);

/* Lists the slots and the roots. Returns false without memory. */
bool culet_live_open(struct culet_live *live, struct culet_memory *memory);
