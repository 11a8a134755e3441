/* glibc_tally.h - the state of a walk over one region, and what it counts.
 *
 * A walk is resumed in the next slice. The last chunk of a slice need not be a chunk any more by then, since it may
 * have been merged with the one before. Then the walk goes back to an older checkpoint: a copy of this state. */
#pragma once

#include "glibc/glibc_heap.h"

struct culet_glibc_tally {
    uint64_t at;        /* the next chunk */
    uint64_t used_from; /* used bytes from here to `at` are not in the region's pages yet; `at`: none */
    uint64_t free_from; /* free chunks, fastbin chunks included, lie from here to `at`; 0: none */
    uint64_t states_to; /* page states are stored up to here */
    bool is_deferred;   /* some chunks of the free run only look used */
    size_t candidates, tcaches, deferred, long_chunks, overheads; /* counts, to go back to */
    size_t block_bytes;
    uint64_t blocks, region_blocks;
    uint16_t page_used;
    struct culet_glibc_sum sum;
    struct culet_histogram sizes;
    struct culet_small_sizes small; /* more used chunks */
};

#define CULET_GLIBC_CHECKPOINTS 8u

struct culet_glibc_walk {
    struct culet_reading *reading;
    struct culet_glibc *heap;
    struct culet_glibc_arena *arena;
    struct culet_region *region;
    uint64_t first, heap_start; /* heap_start is 0 for main's regions */
    bool is_main;
    struct culet_glibc_tally now;
    struct culet_glibc_tally checkpoints[CULET_GLIBC_CHECKPOINTS]; /* the newest last */
    unsigned checkpoint_count;
    uint64_t next_checkpoint_ns;
    uint64_t fault; /* address of the last fault */
    const char *why;
    unsigned same_faults, tries;
    size_t fetch_bytes;
    struct culet_glibc_gap gap;
    struct culet_range *long_chunks; /* their page states are stored when the walk is over */
    size_t long_room;
};

/* Stores the states of all pages below `to`: everything there was seen in this pause or an earlier one. */
void culet_glibc_tally_states(struct culet_glibc_walk *walk, uint64_t to);

/* Adds the pending used bytes to the region's pages. */
void culet_glibc_tally_flush(struct culet_glibc_walk *walk);

/* Counts everything up to `to` as overhead: headers, fenceposts, gaps, what could not be read. */
void culet_glibc_tally_overhead(struct culet_glibc_walk *walk, uint64_t to);

/* Counts the chunk at `at`, of `bytes`, and moves on. `link` is the first word of its user data. */
void culet_glibc_tally_used(struct culet_glibc_walk *walk, uint64_t bytes, uint64_t link);
void culet_glibc_tally_free(struct culet_glibc_walk *walk, uint64_t bytes);

/* Counts the top chunk at `at`, which ends at `end`. */
void culet_glibc_tally_top(struct culet_glibc_walk *walk, uint64_t end);

/* The walk is over: adds its figures to those of the arena and the heap. */
void culet_glibc_tally_finish(struct culet_glibc_walk *walk);

/* ---- glibc_checkpoint ---- */

/* Saves the current state; the oldest checkpoint is dropped if there are too many. */
void culet_glibc_checkpoint_save(struct culet_glibc_walk *walk);

/* Goes back to the newest checkpoint and removes it, unless it is the only one. */
void culet_glibc_checkpoint_restore(struct culet_glibc_walk *walk);

/* Updates the arena's top and the end of the region. Goes back if the region is shorter than what was walked.
 * Returns false if the heap is gone. */
bool culet_glibc_checkpoint_refresh(struct culet_glibc_walk *walk);

/* A chunk of such a size can hold a tcache. */
#define CULET_GLIBC_LEAST_TCACHE 0x290u
#define CULET_GLIBC_MOST_TCACHE 0x310u
