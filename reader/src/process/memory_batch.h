/* memory_batch.h - reads many small pieces of memory with one call to the kernel. */
#pragma once

#include "process/memory.h"

/* Pieces per call: the kernel's limit (IOV_MAX). */
#define CULET_MEMORY_BATCH 1024u

/* Copies `bytes` from each of `count` addresses into `to`, one piece after the other. got[i]: piece i was read. A
 * piece that is not wholly in memory is not read, and is zeros. */
void culet_memory_copy_batch(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes,
                             void *to, bool *got);
