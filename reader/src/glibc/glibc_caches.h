/* glibc_caches.h - the caches of threads (tcache) and arenas (fastbins). */
#pragma once

#include "glibc/glibc_heap.h"

/* Before the walk: infers the form of links from the version of other structures. Links are protected (2.32) if mp_
 * has its newer form (2.35) or there are no fastbins (2.43). Tcaches without counts (2.42) are newer than the former
 * and older than the latter. */
void culet_glibc_caches_infer_links(struct culet_glibc *heap);

/* Reads the fastbins of an arena, in the pause in which its walk begins. */
void culet_glibc_caches_read_fastbins(struct culet_reading *reading, const struct culet_glibc *heap,
                                      struct culet_glibc_arena *arena);

/* During the walk: adds the chunk of `bytes` at `chunk` if it may hold a tcache. */
void culet_glibc_caches_add_tcache(struct culet_reading *reading, struct culet_glibc *heap, uint64_t chunk,
                                   uint64_t bytes);

/* After the walk: finds out which candidates are cached, and corrects the figures. */
void culet_glibc_caches_resolve(struct culet_reading *reading, struct culet_glibc *heap);
