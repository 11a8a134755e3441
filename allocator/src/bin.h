/* bin.h - the slabs of one size class, shared by all threads: claims, frees, trims. */
#ifndef CULET_BIN_H
#define CULET_BIN_H

#include "types.h"

/* A word without a block, which claims point to that hold nothing. */
extern _Atomic uint64_t culet_nothing;

/* Claims a unit for the cache and returns a block of it; NULL when out of memory. */
void *culet_bin_claim(struct culet_cache *cache, unsigned klass);

/* Takes one block, for a thread that has no cache; NULL when out of memory. */
void *culet_bin_take(unsigned klass);

/* Takes note that a free changed what a unit offers: it was full, or has no live block left.
 * Between culet_bias_enter, which said whether this thread is the biased, and _leave. */
void culet_bin_unit_changed(unsigned klass, struct culet_slab *slab, unsigned unit, bool biased);

/* Gives back what a cache holds of a class. */
void culet_bin_release(struct culet_cache *cache, unsigned klass);

/* How much of a bin the lock is held for at a time while memory goes back, so that nobody waits for long. */
#define CULET_PURGE_SLICE_BYTES ((size_t)1 << 20)
#define CULET_PURGE_SLICE_SLABS 64

/* Gives free slabs back to the page heap, and free pages of the others to the kernel until that many bytes have
 * been. Returns the bytes of the latter. */
size_t culet_bin_purge(unsigned klass, size_t bytes);

/* Fewer empty units than this are not worth a visit. */
#define CULET_IDLE_UNITS_MIN 4

/* Begins to watch a bin's empty units. */
void culet_bin_begin_interval(unsigned klass);

/* Bytes of units that are empty and may be resident; with `since`, of those that were so all the time since
 * culet_bin_begin_interval. Takes no lock. */
size_t culet_bin_idle_bytes(unsigned klass, bool since);

/* Whether a heap without a scavenger has so many resident empty units that it should be tidied; never again once that
 * has returned so much that the program is not small, or not young, any more. Takes no lock. */
bool culet_bin_reclaim_due(void);

/* Returns the resident empty units of all classes, and most of what the page heap keeps. To be called without any lock. */
void culet_bin_reclaim(void);

#ifdef CULET_TEST
/* Fills one entry per class. */
struct culet_bin_counts {
    size_t slabs;
    size_t blocks; /* in all of its slabs */
    size_t live;
    size_t claimed;
};
void culet_bin_counts(struct culet_bin_counts figures[CULET_CLASSES]);
#endif

/* Around fork: all bins' locks. In the child they are free again, whoever held them. */
void culet_bin_lock_all(void);
void culet_bin_unlock_all(void);
void culet_bin_reset_all(void);

/* In a forked child: takes note of frees that other threads were in the middle of. */
void culet_bin_reconcile(void);

/* Aborts unless the invariants hold for every bin. Only while no other thread frees. */
void culet_bin_check(void);

#endif
