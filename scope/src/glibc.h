/* glibc.h - what the parts of the walker of glibc's heap share.
 *
 *   glibc_find.c     where the arenas and their heaps are
 *   glibc_cached.c   chunks that threads and arenas keep at hand: freed, yet looking used
 *   glibc_walk.c     the chunks of one stretch of an arena, slice by slice
 *   glibc_mmapped.c  chunks with a mapping of their own
 *   glibc_tell.c     the records
 *   glibc.c          one after the other
 *
 * The structures are those of glibc 2.26 to 2.43 (malloc/malloc.c, malloc/arena.c); what differs between versions is
 * found out by what must hold of it, not by the version's number. */
#ifndef CULET_GLIBC_H
#define CULET_GLIBC_H

#include "../../layouts/glibc_chunk.h"
#include "../format.h"
#include "glibc_cached.h"
#include "scope.h"
#include "sizes.h"

/* In struct malloc_par: from 2.35 on an int more lies before the counts, and a hole behind them. */
#define CULET_GLIBC_COUNTS_NEW 36u
#define CULET_GLIBC_COUNTS_OLD 32u

/* Bytes. */
struct culet_glibc_sum {
    uint64_t used;    /* chunks that look used, without those in caches */
    uint64_t free;    /* binned chunks and top */
    uint64_t tcache;  /* chunks that threads keep */
    uint64_t fastbin;
    uint64_t other;   /* headers of arenas and heaps, fenceposts, gaps, what could not be walked */
    uint64_t trim;    /* resident, and malloc_trim(0) would give it back */
    uint64_t chunks;  /* count */
};

struct culet_glibc_arena {
    uint32_t id;
    uint64_t address;
    uint64_t top, top_bytes; /* top 0: it has no heap yet */
    uint64_t system_bytes;
    uint64_t found_bytes; /* of main's stretches so far */
    uint32_t heaps;
    unsigned fastbins;
    uint64_t fastbin[10]; /* first chunks */
    struct culet_glibc_sum sum;
    bool broken;
    char why[256];
};

struct culet_glibc {
    char library[512]; /* path */
    uint64_t main;     /* address of main_arena */
    bool lost;         /* the arenas were not found, though there must be some */
    unsigned top_at;   /* offset of `top` in an arena */
    uint64_t sbrk_field; /* address of mp_.sbrk_base; 0: not found */
    unsigned counts_before; /* how far before it n_mmaps is: CULET_GLIBC_COUNTS_... */
    uint64_t text_start, text_end; /* libc's code */
    uint64_t heap_max;             /* HEAP_MAX_SIZE; 0: no other arenas than main */
    struct culet_glibc_arena *arenas;
    size_t arena_count, arena_room;
    struct culet_glibc_cached cached;
    unsigned settles;       /* how often the process was let go because a lock was held */
    uint64_t chain_steps;   /* chunks that may still be looked at by culet_glibc_chain */
    bool walking; /* something has been read that must fit what will be */
    struct culet_sizes sizes;
    uint64_t n_mmaps, mmapped_bytes;             /* as mp_ tells */
    uint64_t found_mmaps, found_mmapped_bytes;   /* as found */
    uint64_t walk_ns;
};

/* ---- glibc_find.c; paused ---- */

/* Finds main_arena and mp_. Returns whether there is one that serves. */
bool culet_glibc_find(struct culet_scope *scope, struct culet_glibc *heap);

/* Reads the ring of arenas. Returns false when it does not close. */
bool culet_glibc_ring(struct culet_scope *scope, struct culet_glibc *heap);

/* Brings an arena's top and system_bytes up to date; false when it cannot be read. */
bool culet_glibc_refresh(struct culet_scope *scope, const struct culet_glibc *heap, struct culet_glibc_arena *arena);

/* Where the arena's top ends into *end, when all from `start` to there is mapped; else false. */
bool culet_glibc_top_end(struct culet_scope *scope, const struct culet_glibc_arena *arena, uint64_t start, uint64_t *end);

/* The heaps (their addresses) of an arena that is not main, the newest first, at most `room`. Returns how many. */
size_t culet_glibc_heaps(struct culet_scope *scope, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                         uint64_t *heaps, size_t room);

/* Address of the first chunk in a heap of an arena that is not main. */
uint64_t culet_glibc_first_chunk(const struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                                 uint64_t start);

/* Size of a heap now; 0 when it is none of this arena any more, or cannot be that long. */
uint64_t culet_glibc_heap_bytes(struct culet_scope *scope, const struct culet_glibc *heap,
                                const struct culet_glibc_arena *arena, uint64_t start);

/* mp_.sbrk_base, or 0. Updates n_mmaps and mmapped_bytes. */
uint64_t culet_glibc_parameters(struct culet_scope *scope, struct culet_glibc *heap);

/* ---- glibc_cached.c ---- */

/* Before the walk: what of the caches' form the arenas' and mp_'s tells. Links are masked (2.32) in all that have mp_ in
 * its newer form (2.35) or no fastbins (2.43); tcaches without counts (2.42) are newer than the former and older than the
 * latter. */
void culet_glibc_know_links(struct culet_glibc *heap);

/* Notes what may be a thread's tcache: the chunk of `bytes` at `chunk`. */
void culet_glibc_note_tcache(struct culet_scope *scope, struct culet_glibc *heap, uint64_t chunk, uint64_t bytes);

/* Finds out which addresses malloc may have, for culet_glibc_may_link. */
void culet_glibc_bound_links(const struct culet_scope *scope, struct culet_glibc_cached *cached);

/* The notes from number `first` on are those of this region. */
void culet_glibc_end_stretch(struct culet_glibc_cached *cached, const struct culet_place *place, size_t first);

/* Reads the heads of an arena's fastbins; in the pause in which its walk begins. */
void culet_glibc_read_fastbins(struct culet_scope *scope, const struct culet_glibc *heap,
                               struct culet_glibc_arena *arena);

/* After all walks: finds out which chunks are cached, and takes them out of what is used. */
void culet_glibc_settle_cached(struct culet_scope *scope, struct culet_glibc *heap);

/* ---- glibc_walk.c; pauses by itself ---- */

/* Walks one stretch of an arena, from `first` (a chunk) on. The region `place` is resized when it grows or shrinks
 * meanwhile. heap_start is 0 for main's. */
void culet_glibc_walk(struct culet_scope *scope, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                      struct culet_place *place, uint64_t first, uint64_t heap_start);

/* Resident bytes that malloc_trim(0) would give back of the free bytes from..to of a region, which are one chunk once
 * it has merged them. */
uint64_t culet_glibc_trimmed(const struct culet_scope *scope, const struct culet_place *place, uint64_t from,
                             uint64_t to, enum culet_glibc_end end);

/* Whether a chain of chunks begins at `address`: that reaches `end`, or is long enough to be no chance. Looks at no more
 * than *steps chunks, which it counts down; with none left no chain is one. */
bool culet_glibc_chain(struct culet_scope *scope, uint64_t address, uint64_t end, uint64_t *steps);

/* ---- glibc_mmapped.c; pauses by itself ---- */

/* Makes a region of every chunk with a mapping of its own. */
void culet_glibc_find_mmapped(struct culet_scope *scope, struct culet_glibc *heap);

/* Whether all large blocks were found, by glibc's own count and sum of them. The sum is too large by 16 bytes for each
 * time that a block was grown in glibc 2.43 (mremap_chunk forgets its header), also for blocks freed since. */
bool culet_glibc_mmapped_complete(const struct culet_glibc *heap);

/* ---- glibc.c ---- */

/* Paused: waits, by letting go and pausing again, until no thread is in the middle of changing this arena (NULL: any). */
void culet_glibc_settle(struct culet_scope *scope, struct culet_glibc *heap,
                        const struct culet_glibc_arena *arena);

/* Whether some thread is in the middle of changing this arena (NULL: any). */
bool culet_glibc_busy(struct culet_scope *scope, const struct culet_glibc *heap,
                      const struct culet_glibc_arena *arena);

/* Marks the arena broken, for the reason that printf's arguments tell; the first one stays. */
void culet_glibc_break(struct culet_glibc_arena *arena, const char *why, ...) __attribute__((format(printf, 2, 3)));

/* ---- glibc_tell.c ---- */

void culet_glibc_tell(struct culet_scope *scope, const struct culet_glibc *heap);

#endif
