/* bin.h - the slabs of one size class, shared by all threads: claims, frees, purges.
 *
 * A thread enters a bin as the biased thread (no lock), or with the bin's lock (bias.h). The list holds the slabs that
 * have a free block; a claim takes a unit of `recent` first, then of the list, then of a new slab. */
#ifndef CULET_BIN_H
#define CULET_BIN_H

#include "types.h"

/* Claims a unit for the cache and returns a block of it; NULL when out of memory. */
void *culet_bin_claim(struct culet_cache *cache, unsigned klass);

/* One block, without a claim; NULL when out of memory. */
void *culet_bin_take(unsigned klass);

/* Records that a free changed what a unit offers: the unit was full, or has no live block left.
 * Between culet_bias_enter, which returned `biased`, and culet_bias_leave. */
void culet_bin_unit_changed(unsigned klass, struct culet_slab *slab, unsigned unit, bool biased);

/* Releases a cache's claim of a class. */
void culet_bin_release(struct culet_cache *cache, unsigned klass);

/* Destroys idle slabs, and returns free pages of the others until `bytes` have gone back. Returns the bytes of the
 * latter. Holds the lock for one slice at a time (reclaim_policy.h). */
size_t culet_bin_purge(unsigned klass, size_t bytes);

/* Starts an interval: the low-water mark of empty units is the present count. */
void culet_bin_begin_interval(unsigned klass);

/* Bytes of empty units that may be resident; with `since`, their low-water mark since culet_bin_begin_interval. Without
 * the lock. */
size_t culet_bin_idle_bytes(unsigned klass, bool since);

/* Whether a small heap has so many resident empty units that culet_bin_reclaim is worth while. Without any lock. */
bool culet_bin_reclaim_due(void);

/* Returns the resident empty units of all classes, and most of the dirty pages. To be called without any lock. */
void culet_bin_reclaim(void);

/* Around fork: all bins' locks. Reset: in the child they are free, whoever held them. */
void culet_bin_lock_all(void);
void culet_bin_unlock_all(void);
void culet_bin_reset_all(void);

/* In a forked child: records frees that other threads had not recorded yet. */
void culet_bin_reconcile(void);

/* Aborts unless the invariants hold for every bin. Only while no other thread frees. */
void culet_bin_check(void);

#endif
