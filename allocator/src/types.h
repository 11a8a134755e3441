/* types.h - the map of the allocator: every structure, who writes it, which lock guards it, and the invariants.
 *
 *   address --> pagemap entry --> span --> slab: block index --> unit, bit
 *                                      --> large or huge block: the whole span
 *
 * The kernel provides segments of 4 MiB, divided into pages of 4 KiB. The page heap hands out ranges of pages. A slab
 * is such a range, cut into blocks of one size class. The state of a block is kept in bitmaps of the slab's descriptor,
 * not in the block: neither a free nor a purge writes into a block, so a forked child keeps sharing the pages it frees.
 *
 * All threads share one heap. The blocks of a slab form units of up to 64 blocks (about 4 KiB). A thread claims all
 * free blocks of a unit under the bin's lock, then takes them one by one from the unit's `claimed` word, which only
 * that thread writes. A free is one atomic AND on the unit's `live` word, from any thread; the block is then available
 * to every thread. A free into the unit that the thread has claimed sets the bit in `claimed` instead, without an
 * atomic. While one thread alone uses the heap, as under Ruby's GVL, the heap is biased towards it and needs no atomics
 * and no locks (bias.h).
 *
 * Block states, by the block's bits in (live, claimed):
 *     free    (0, 0)   any thread may claim the block
 *     claimed (1, 1)   held by one thread's cache
 *     live    (1, 0)   in use by the program
 * A free of a block that is not live is a misuse and is reported at once.
 *
 * Invariants (culet_heap_check; "quiet": no free in progress):
 *     claimed & ~live == 0, in each unit
 *     bit u of available == (live of u != full mask of u)     bin lock, quiet; except units in the bin's `recent`
 *     bit u of empty     == (live of u == 0)                  bin lock, quiet
 *     a slab is listed  <=> available != 0                    bin lock, quiet
 *     a bin's empties    == sum of its slabs' empty bits, >= clean
 *     used pages of a segment == pages of its slabs + pages of its large blocks
 *     dirty & used == 0, in each segment                      pages lock
 *
 * "bin lock" means: the lock, or being the biased thread, or exclusive access (bias.h).
 *
 * Lock order: bias -> registry -> bin (one per size class) -> pages -> meta. A fork takes glibc's lock on open streams
 * before all of these (heap.c).
 *
 * culet-scope reads these structures from another process through selfmap.h: add new structures that hold blocks, free
 * pages or descriptors there.
 *
 * When freed memory goes back to the kernel: reclaim_policy.h. */
#ifndef CULET_TYPES_H
#define CULET_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define CULET_LIKELY(x) __builtin_expect(!!(x), 1)
#define CULET_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The heap's page: 4 KiB on every kernel. The kernel's own page size matters only when memory is given back. */
#define CULET_PAGE_SHIFT 12
#define CULET_PAGE ((size_t)1 << CULET_PAGE_SHIFT)

#define CULET_ALIGNMENT 16
#define CULET_TINY_MAX 1024        /* bytes; size classes in steps of 16 up to here, */
#define CULET_SMALL_MAX 32768      /* then nine per doubling up to here; */
#define CULET_LARGE_MAX (1u << 20) /* ranges of pages up to here; above, huge blocks with a mapping of their own */

/* Class 0 is unused; 1..64 are the multiples of 16; then five doublings of nine. */
#define CULET_TINY_CLASSES (CULET_TINY_MAX / CULET_ALIGNMENT)
#define CULET_DOUBLING_CLASSES 9
#define CULET_SIZES (CULET_TINY_CLASSES + CULET_DOUBLING_CLASSES * 5)

/* Class k + CULET_SIZES has blocks of the same size for calloc. Zeroed memory is mostly tables that the program keeps
 * writing (Ruby's call caches at each major GC); in separate slabs it does not unshare the pages of strings and code in
 * forked workers. A small heap uses one set only: each class in use costs a partly filled page. */
#define CULET_CLASSES (1 + 2 * CULET_SIZES)

#define CULET_UNITS 16      /* units per slab, at most */
#define CULET_SLAB_PAGES 16 /* pages per slab, at most */

#define CULET_SEGMENT_PAGES 1024 /* 4 MiB */
#define CULET_SEGMENT_BYTES (CULET_SEGMENT_PAGES * CULET_PAGE)
#define CULET_SEGMENTS (1u << 18) /* 1 TiB of slabs and large blocks */

/* A futex: 0 free, 1 held, 2 held with waiters. */
struct culet_lock {
    _Atomic uint32_t state;
};

/* The shape of a size class; constant after set-up. */
struct culet_class {
    uint32_t size;       /* bytes per block */
    uint32_t reciprocal; /* ceil(2^32 / size): offset * reciprocal >> 32 == offset / size, below 64 KiB */
    uint64_t full;       /* live word of a full unit */
    uint64_t last_full;  /* live word of the last unit when full */
    uint16_t count;      /* blocks per slab */
    uint8_t unit_shift;  /* log2 of the blocks per unit */
    uint8_t last;        /* number of the last unit, which may be shorter */
    uint8_t pages;       /* per slab */
    uint8_t unit_mask;   /* blocks per unit, minus one */
};

enum culet_kind { CULET_SLAB = 1, CULET_LARGE = 2, CULET_HUGE = 3 };

/* The head of every descriptor that the pagemap leads to. Descriptors are type-stable: their memory is reused for the
 * same kind only, so a late reader sees an old or a new descriptor, never other data. */
struct culet_span {
    uintptr_t start; /* address of the first block */
    _Atomic uint8_t kind;
    _Atomic uint8_t klass; /* size class of a slab, else 0 */
};

/* The bitmaps of a unit, side by side because a free reads both. */
struct culet_unit {
    _Atomic uint64_t live;
    _Atomic uint64_t claimed; /* written by the claiming thread alone */
};

struct culet_slab {
    struct culet_span span;
    uint32_t segment;
    uint16_t available; /* bit per unit: has a free block       [bin lock, as all below] */
    uint16_t empty;     /* bit per unit: has no live block */
    uint16_t claims;    /* bit per unit: claimed by a thread */
    uint16_t dirty;     /* bit per page: may be resident */
    bool listed;
    struct culet_slab *next; /* the bin's list */
    struct culet_slab *prev;
    _Alignas(64) struct culet_unit unit[CULET_UNITS];
};

/* A large block (a range of pages) or a huge one (a mapping). [pages lock] */
struct culet_large {
    struct culet_span span;
    uint32_t segment;             /* of a large block */
    uint32_t mapping;             /* of a huge block: blocks cut from one mapping have the same number (huge_cache.h) */
    size_t bytes;                 /* usable: a multiple of the page, for a huge block of the kernel's page */
    bool ending;                  /* a huge block that is freed, but still mapped */
    LIST_ENTRY(culet_large) link; /* huge blocks are listed, to find the one that contains an address */
};

/* 4 MiB from the kernel. [pages lock] */
struct culet_segment {
    uintptr_t base;
    uint32_t free; /* pages */
    uint64_t used[CULET_SEGMENT_PAGES / 64];
    uint64_t dirty[CULET_SEGMENT_PAGES / 64]; /* free, and may be resident */
};

#define CULET_RECENT 8

/* The slabs of a size class that have a free block; full slabs are known to the pagemap only. */
struct culet_bin {
    _Alignas(64) struct culet_lock lock; /* guards the bin, and the bin-locked members of its slabs */
    uint32_t slabs;                      /* all slabs of the class */
    struct culet_slab *first;
    struct culet_slab *last;
    uint32_t listed;
    _Atomic uint32_t empties;   /* units without a live block; read without the lock, as the next two */
    _Atomic uint32_t clean;     /* of these, about how many are not resident or cannot be purged */
    _Atomic uint32_t low_water; /* least empties - clean in the scavenger's interval */
    uint32_t recents;
    uint32_t slab_releases; /* times the last slab was destroyed */
    uintptr_t double_freed; /* a block found to be both free and claimed; reported when the lock is released */
    /* Units that got a free block lately and are not in `available` yet: slab address + unit number. Claims try these
     * first, because their descriptors are in the processor's cache. Entries may be stale. */
    uintptr_t recent[CULET_RECENT];
};

/* A thread's claim on one unit. */
struct culet_claim {
    _Atomic uint64_t *word; /* the unit's claimed word, or &culet_no_claim */
    uintptr_t base;         /* address of the unit's first block */
};

/* A thread's cache: at most one claimed unit per class. Written by its thread; linked by the registry. */
struct culet_cache {
    struct culet_claim claim[CULET_CLASSES];
    struct culet_slab *slab[CULET_CLASSES]; /* the slab of each claim */
    _Atomic uint32_t busy;                  /* 1 between culet_bias_enter and culet_bias_leave */
    bool uncached;                          /* placeholder, shared by threads without a cache of their own */
    uint32_t visits;                        /* to slow paths; counted for threads with a cache only */
    uint32_t refills;                       /* slow-path requests */
    uint8_t unclaimed[CULET_CLASSES];       /* requests still to be served block by block, before the first claim */
    LIST_ENTRY(culet_cache) link;           /* [registry lock] */
};

#endif
