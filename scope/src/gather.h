/* gather.h - reads many small pieces of the process's memory, wherever they lie, in one call to the kernel. */
#ifndef CULET_GATHER_H
#define CULET_GATHER_H

#include "memory.h"

/* Pieces at once: the kernel takes no more (IOV_MAX). */
#define CULET_GATHER_PIECES 1024u

/* Copies `bytes` from each of the `count` addresses into `to`, piece by piece. `got[i]` tells whether the i-th is there;
 * a piece that is not wholly in memory is not read, and is zeroes. */
void culet_gather(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes, void *to,
                  bool *got);

#endif
