/* types.h - the map of culet's design: every structure, who owns it, which lock guards it.
 *
 *   address --> pagemap --> span --> slab: block index --> unit, bit
 *                                 --> run, huge: the whole block
 *
 * Memory comes from the kernel in segments. A segment is divided into pages of 4 KiB; the page heap
 * hands out runs of pages. A slab is such a run cut into blocks of one size class. What is known of a
 * block (live, free, claimed) stands in bitmaps of the slab's descriptor, away from the block: neither a
 * free nor a purge ever writes into a block, so a forked child shares what it only frees.
 *
 * One heap serves all threads. A slab's blocks are grouped into units of up to 64 blocks (about 4 KiB).
 * A thread that needs blocks of a class claims all free blocks of one unit at once, under the bin's lock,
 * and then hands them out one by one from the unit's `claimed` word, which nobody else writes. A free,
 * by whichever thread, is one atomic AND on the unit's `live` word: no cache to fill or flush, and the
 * block is there for everybody at once. A block of the very unit that the freeing thread is handing out
 * goes back into its `claimed` word instead, which needs no atomic. And while one thread alone uses the heap,
 * as under Ruby's GVL, the heap is biased towards it and needs neither atomics nor locks at all (bias.h).
 *
 * Block states, by its bit in (live, claimed):
 *     free    (0, 0)   anyone may claim it
 *     claimed (1, 1)   belongs to one thread's cache, not handed out
 *     live    (1, 0)   in the program's hands
 * A free of anything but a live block is a misuse and is caught there and then.
 *
 * Invariants (checked by culet_heap_check in debug builds, with the locks named):
 *     claimed & ~live == 0 in each unit
 *     bit u of available == (live of u != full mask of u),     bin lock, no free in flight
 *         but for units that the bin's `recent` lists
 *     bit u of empty     == (live of u == 0)                   bin lock, no free in flight
 *     slab in bin's list <=> available != 0                    bin lock, no free in flight
 *     a bin's empties == the sum of its slabs' empty bits >= its clean
 *     used pages of a segment == pages of its slabs and runs
 *     dirty & used == 0 in a segment                           pages lock
 *
 * "bin lock" below means: the lock, or being the heap's span, or alone (bias.h).
 *
 * Locks, in the order in which they may be taken:
 *     bias -> registry -> bin (one per size class) -> pages -> meta
 * Before all of them, around a fork, glibc's lock on the list of open streams (heap.c).
 *
 * Readers in another process find all of this by a record in the library (selfmap.h): who moves or adds a structure that
 * holds blocks, free pages or descriptors tells it there.
 *
 * Freed memory stays resident for a moment, since most of it is wanted again at once. What has stayed free for a
 * whole interval of the scavenger's, a thread that larger heaps have (scavenger.h), goes back to the kernel.
 */
#ifndef CULET_TYPES_H
#define CULET_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CULET_LIKELY(x) __builtin_expect(!!(x), 1)
#define CULET_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The page heap's unit of 4 KiB, whatever the kernel's page size (which is only asked when memory is
 * given back). */
#define CULET_PAGE_SHIFT 12
#define CULET_PAGE ((size_t)1 << CULET_PAGE_SHIFT)

#define CULET_ALIGNMENT 16
#define CULET_TINY_MAX 1024      /* classes in steps of 16 bytes up to here, */
#define CULET_SMALL_MAX 32768    /* then nine per doubling up to here; */
#define CULET_LARGE_MAX (1u << 20) /* runs of pages up to here; above, the kernel serves directly */

/* Class 0 is not used; 1..64 are the multiples of 16; then five doublings of nine. */
#define CULET_TINY_CLASSES (CULET_TINY_MAX / CULET_ALIGNMENT)
#define CULET_DOUBLING_CLASSES 9
#define CULET_SIZES (CULET_TINY_CLASSES + CULET_DOUBLING_CLASSES * 5)

/* Behind them the same sizes again, for blocks that calloc gives: slabs of their own. What a program asks to
 * be zeroed are mostly tables and caches that it goes on writing for as long as it runs; Ruby's are call
 * caches and inline caches, which each major GC writes. What it fills at once (code, strings, names) stays as
 * it is. Apart, the former do not unshare the pages of the latter in forked workers. A small heap, to which a
 * begun page in each of so many classes would be much, does without. */
#define CULET_CLASSES (1 + 2 * CULET_SIZES)

#define CULET_UNITS 16          /* units per slab at the most */
#define CULET_SLAB_PAGES 16  /* pages per slab at the most */

#define CULET_SEGMENT_PAGES 1024 /* 4 MiB */
#define CULET_SEGMENT_BYTES (CULET_SEGMENT_PAGES * CULET_PAGE)
#define CULET_SEGMENTS (1u << 18) /* 1 TiB of slabs and runs */

/* A futex: 0 free, 1 held, 2 held and waited for. */
struct culet_lock {
    _Atomic uint32_t state;
};

/* The shape of a size class; constant once the heap is set up. */
struct culet_class {
    uint32_t size;       /* bytes per block */
    uint32_t reciprocal; /* ceil(2^32 / size): offset * reciprocal >> 32 == offset / size below 64 KiB */
    uint64_t full;       /* mask of a whole unit */
    uint64_t last_full;  /* mask of the last unit */
    uint16_t count;      /* blocks per slab */
    uint8_t unit_shift;  /* log2 of the blocks per unit */
    uint8_t last;        /* index of the last unit, which may be shorter than the others */
    uint8_t pages;    /* per slab */
    uint8_t unit_mask;   /* blocks per unit, less one */
};

enum culet_kind { CULET_SLAB = 1, CULET_LARGE = 2, CULET_HUGE = 3 };

/* What the pagemap leads to. Descriptors are type-stable: their memory is reused for descriptors of the
 * same kind only, so a late reader finds an old one or a new one, never something else. */
struct culet_span {
    uintptr_t start; /* address of the first block */
    _Atomic uint8_t kind;
    _Atomic uint8_t klass; /* size class of a slab */
};

/* A unit's blocks, bit by bit. Side by side, because a free looks at both. */
struct culet_unit {
    _Atomic uint64_t live;
    _Atomic uint64_t claimed; /* written by the claiming thread alone */
};

/* A slab. Its class gives its shape. A free touches the pagemap's entry and the unit, nothing else. */
struct culet_slab {
    struct culet_span span;
    uint32_t segment;
    uint16_t available; /* units with a free block                   [bin lock, as all below] */
    uint16_t empty;     /* units without any live block */
    uint16_t claims;    /* units with a claim that may not be used up */
    uint16_t dirty;     /* pages that may be resident */
    bool listed;
    struct culet_slab *next; /* the bin's list */
    struct culet_slab *prev;
    _Alignas(64) struct culet_unit unit[CULET_UNITS];
};

/* A block of its own: a run of pages, or one straight from the kernel. [pages lock] */
struct culet_large {
    struct culet_span span;
    uint32_t segment; /* of a run */
    uint32_t mapping; /* of a huge block: what was mapped together has the same number (huge_cache.h) */
    size_t bytes;     /* usable: a multiple of the page, or of the kernel's page */
    bool ending;      /* a huge block that is freed, but not unmapped yet */
    struct culet_large *next; /* huge blocks are listed, so that an interior pointer can be named */
    struct culet_large *prev;
};

/* Four MiB from the kernel. [pages lock] */
struct culet_segment {
    uintptr_t base;
    uint32_t free;  /* pages */
    uint64_t used[CULET_SEGMENT_PAGES / 64];
    uint64_t dirty[CULET_SEGMENT_PAGES / 64]; /* free, and maybe resident */
};

/* The last units that got a free block, which their slabs do not offer yet: the next requests take these, whose
 * descriptors are at hand. An entry may be out of date: whoever takes one looks. */
#define CULET_RECENT 8

/* A size class's slabs that have a free block; slabs without one are known to the pagemap only.
 * The lock also guards the bin-locked members of all slabs of the class. */
struct culet_bin {
    _Alignas(64) struct culet_lock lock;
    uint32_t slabs; /* all slabs of this class */
    struct culet_slab *first;
    struct culet_slab *last;
    uint32_t listed;
    _Atomic uint32_t empties; /* units without a live block; read without the lock, as the next two */
    _Atomic uint32_t clean;   /* of these, those that are not resident or cannot be returned, about */
    _Atomic uint32_t low_water;   /* low_water of empties - clean since the scavenger looked */
    uint32_t recents;
    uint32_t slab_releases; /* times that the last slab was given up */
    uintptr_t double_freed;  /* a block that was found to be free and in a claim at once */
    uintptr_t recent[CULET_RECENT]; /* a slab's address + the unit's number */
};

/* One thread's hold on one unit. `word` is the unit's claimed word, or &culet_nothing. */
struct culet_claim {
    _Atomic uint64_t *word;
    uintptr_t base; /* address of the unit's first block */
};

/* A thread's cache: at most one claimed unit per class. Owned by its thread; the list by the registry. */
struct culet_cache {
    struct culet_claim claim[CULET_CLASSES];
    struct culet_slab *slab[CULET_CLASSES]; /* the slab of each claim */
    _Atomic uint32_t busy;                  /* between culet_bias_enter and _leave */
    bool uncached;                             /* shared by threads without a cache of their own */
    uint32_t visits;                        /* to slow paths; a uncached's are not counted */
    uint32_t refills;                       /* requests by the slow path */
    uint8_t unclaimed[CULET_CLASSES];          /* requests that are served block by block before a unit is claimed */
    struct culet_cache *next;               /* [registry lock] */
    struct culet_cache *prev;
};

#endif
