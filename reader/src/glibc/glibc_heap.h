/* glibc_heap.h - what is known of glibc's heap, and the steps of its walker.
 *
 *   glibc_find         where libc's data has main_arena and mp_, which has the counts of mapped chunks and where brk's heap
 *                      begins
 *   glibc_arenas       the list of arenas, their heaps and tops
 *   glibc_locks        waits until no thread is inside malloc
 *   glibc_walk         the chunks of one region, slice by slice; with glibc_tally, glibc_checkpoint and glibc_chain
 *   glibc_candidates   chunks that may be in a cache; glibc_caches finds out which are
 *   glibc_mmapped      chunks with a mapping of their own
 *   glibc_records      the records
 *   glibc_walker       runs them one after the other
 *
 * The structures are those of glibc 2.26 to 2.43 (malloc/malloc.c, malloc/arena.c). Differences between versions are
 * inferred from invariants of the data, never from a version number. */
#pragma once

#include "glibc/glibc_candidates.h"
#include "reader/layouts/glibc_chunk.h"
#include "reading.h"
#include "regions/histogram.h"

/* Bytes. */
struct culet_glibc_sum {
    uint64_t used; /* chunks that look used, without cached ones */
    uint64_t free; /* binned chunks and top */
    uint64_t tcache;
    uint64_t fastbin;
    uint64_t overhead; /* headers of arenas and heaps, fenceposts, gaps, what could not be walked */
    uint64_t trim;     /* resident, and returned by malloc_trim(0) */
    uint64_t chunks;   /* count */
};

#define CULET_GLIBC_FASTBINS 10u

struct culet_glibc_arena {
    uint32_t id;
    uint64_t address;
    uint64_t top, top_bytes; /* top 0: it has no heap yet */
    uint64_t system_bytes;
    uint64_t found_bytes; /* main arena: of the regions found so far */
    uint32_t heaps;
    unsigned fastbins;
    uint64_t fastbin[CULET_GLIBC_FASTBINS]; /* first chunks */
    struct culet_glibc_sum sum;
    bool broken;
    char why[256];
};

#define CULET_GLIBC_MOST_BINS 76u

struct culet_glibc_tcache {
    bool counts; /* `count` is the number of chunks in a bin; else the room left in it */
    unsigned bins;
    uint16_t count[CULET_GLIBC_MOST_BINS];
    uint64_t entry[CULET_GLIBC_MOST_BINS];
};

/* The end of a run of free chunks: another chunk, or a top, which belongs to the run. */
enum culet_glibc_end { CULET_GLIBC_CHUNK, CULET_GLIBC_MAIN_TOP, CULET_GLIBC_TOP };

/* Adjacent free chunks, some of them perhaps in a fastbin: what trim returns is known after the caches are resolved. */
struct culet_glibc_deferred_trim {
    struct culet_region *region;
    uint64_t from, to;
    enum culet_glibc_end end;
};

/* The caches of threads and arenas. */
struct culet_glibc_caches {
    unsigned tcaches_tried; /* to infer the form of links */
    int link_score;         /* lists that fit protected links, minus lists that fit plain ones */
    bool only_counted_tcaches, only_uncounted_tcaches; /* from the version of other structures; neither: unknown */
    struct culet_glibc_tcache *tcaches;
    size_t tcache_count, tcache_room;
    struct culet_glibc_deferred_trim *deferred;
    size_t deferred_count, deferred_room;
};

struct culet_glibc {
    const char *library;           /* path */
    uint64_t main;                 /* address of main_arena */
    bool lost;                     /* the arenas were not found, though there must be some */
    unsigned top_offset;           /* of `top` in an arena */
    uint64_t sbrk_field;           /* address of mp_.sbrk_base; 0: not found */
    unsigned counts_before;        /* distance of n_mmaps before it: CULET_GLIBC_COUNTS_... */
    uint64_t text_start, text_end; /* libc's code */
    uint64_t heap_max;             /* HEAP_MAX_SIZE; 0: no arena except main */
    struct culet_glibc_arena *arenas;
    size_t arena_count, arena_room;
    struct culet_glibc_candidates candidates;
    struct culet_glibc_caches caches;
    unsigned lock_waits;  /* how often the process was released because a lock was held */
    uint64_t chain_steps; /* chunks that culet_glibc_chain may still look at */
    bool walking;         /* something has been read that later reads must fit */
    struct culet_histogram sizes;
    uint64_t n_mmaps, mmapped_bytes;           /* from mp_ */
    uint64_t found_mmaps, found_mmapped_bytes; /* found by glibc_mmapped */
    uint64_t cached_mmapped_bytes;             /* of these, in a tcache */
};

/* ---- glibc_find ---- */

/* Paused: finds main_arena, mp_ and libc's code, in libc's data or that of a static program. Returns whether there is a
 * heap. */
bool culet_glibc_find(struct culet_reading *reading, struct culet_glibc *heap);

/* Distance from n_mmaps to sbrk_base: from 2.35 on one more int lies before the counts, and padding after them. */
#define CULET_GLIBC_COUNTS_NEW 36u
#define CULET_GLIBC_COUNTS_OLD 32u

/* Updates n_mmaps and mmapped_bytes. Returns mp_.sbrk_base, or 0. */
uint64_t culet_glibc_parameters_read(struct culet_reading *reading, struct culet_glibc *heap);

/* ---- glibc_arenas; all of it needs a pause ---- */

/* Marks the arena as broken, with a reason (printf's arguments); the first reason stays. */
void culet_glibc_break(struct culet_glibc_arena *arena, const char *why, ...) __attribute__((format(printf, 2, 3)));

/* Finds main_arena in libc's data, of which `data` is a copy: `bytes` from address `base` on. */
bool culet_glibc_arenas_find_main(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                                  uint64_t base, size_t bytes);

/* Reads the circular list of arenas. Returns false if it is not circular. */
bool culet_glibc_arenas_read(struct culet_reading *reading, struct culet_glibc *heap);

/* Updates top and system_bytes of an arena. */
bool culet_glibc_arena_refresh(struct culet_reading *reading, const struct culet_glibc *heap,
                               struct culet_glibc_arena *arena);

/* Stores the end of the arena's top in *end, if everything from `start` to there is mapped; else returns false. */
bool culet_glibc_arena_top_end(struct culet_reading *reading, const struct culet_glibc_arena *arena, uint64_t start,
                               uint64_t *end);

/* The addresses of the heaps of an arena other than main, the newest first, at most `room`. Returns their number. */
size_t culet_glibc_arena_heaps(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                               uint64_t *heaps, size_t room);

/* The first chunk of a heap of an arena other than main. */
uint64_t culet_glibc_heap_first_chunk(const struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                                      uint64_t start);

/* The current size of a heap; 0 if it does not belong to the arena any more, or cannot have that size. */
uint64_t culet_glibc_heap_bytes(struct culet_reading *reading, const struct culet_glibc *heap,
                                const struct culet_glibc_arena *arena, uint64_t start);

/* ---- glibc_locks ---- */

/* Paused: releases and pauses the process until no thread is changing this arena (NULL: any arena), for a limited
 * time. */
void culet_glibc_wait_until_idle(struct culet_reading *reading, struct culet_glibc *heap,
                                 const struct culet_glibc_arena *arena);

/* ---- glibc_chain ---- */

/* Whether a chain of chunks begins at `address` that reaches `end`, or is too long to be a coincidence. Charges the
 * steps to heap->chain_steps; without any left there is no chain. */
bool culet_glibc_chain(struct culet_reading *reading, struct culet_glibc *heap, uint64_t address, uint64_t end);

/* A search for the end of a gap, which may take several slices. Initialize to zero. */
struct culet_glibc_gap {
    uint64_t start, searched_to;
};

/* Finds where the heap goes on after a gap that another user of brk has left at `from`: *next is a chunk, or the
 * arena's top. Returns false if the slice is over before that is known. */
bool culet_glibc_gap_end(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                         struct culet_glibc_gap *gap, uint64_t from, uint64_t *next);

/* ---- glibc_walk ---- */

/* Walks from the chunk `first` on. The region is resized if it grows or shrinks meanwhile. heap_start is 0 for main's
 * regions. Pauses by itself. */
void culet_glibc_walk_region(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                             struct culet_region *region, uint64_t first, uint64_t heap_start);

/* ---- glibc_caches ---- */

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

/* Resident bytes that malloc_trim(0) returns of the free bytes from..to of a region, which it merges into one chunk. */
uint64_t culet_glibc_trim_bytes(const struct culet_region *region, uint64_t from, uint64_t to,
                                enum culet_glibc_end end);

/* ---- glibc_mmapped ---- */

/* Makes a region of each mapped chunk. Paused at the start; yields. */
void culet_glibc_mmapped_find(struct culet_reading *reading, struct culet_glibc *heap);

/* Whether all mapped chunks were found, by the count and sum in mp_. In glibc 2.43 the sum is too large by 16 bytes
 * for each mremap of a chunk (mremap_chunk forgets the header), also of chunks freed since. */
bool culet_glibc_mmapped_complete(const struct culet_glibc *heap);

/* ---- glibc_records ---- */

/* A culet_walker's `write`. */
void culet_glibc_write(struct culet_reading *reading, void *context);
