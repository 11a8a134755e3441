/* retain/snapshot.h - writes all objects in V8's format of heap snapshots, which Chrome's DevTools open. */
#pragma once

#include "retain/analysis.h"

/* Writes the snapshot to a descriptor, as it is made: only the names of references and classes are in memory.
 *
 * Returns NULL, or a sentence on why not. */
const char *culet_snapshot_write(struct culet_analysis *analysis, int fd);
