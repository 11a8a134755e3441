/* glibc_mmapped.h - chunks with a mapping of their own. */
#pragma once

#include "glibc/glibc_heap.h"

/* Makes a region of each mapped chunk. Paused at the start; yields. */
void culet_glibc_mmapped_find(struct culet_reading *reading, struct culet_glibc *heap);

/* Whether all mapped chunks were found, by the count and sum in mp_. In glibc 2.43 the sum is too large by 16 bytes
 * for each mremap of a chunk (mremap_chunk forgets the header), also of chunks freed since. */
bool culet_glibc_mmapped_complete(const struct culet_glibc *heap);
