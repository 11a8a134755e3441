/* types.h - the map of the allocator: every structure, who writes it, which lock guards it, and the invariants.
 *
 *   address --> pagemap entry --> slab, class, place of the slab, arena: block index --> unit, bit
 *                             --> large or huge block: the whole span
 *
 * The kernel provides segments of 4 MiB, divided into pages of 4 KiB. The page heap hands out ranges of pages. A slab
 * is such a range, cut into blocks of one size class. The state of a block is kept in bitmaps of the slab's descriptor,
 * not in the block: neither a free nor a purge writes into a block, so a forked child keeps sharing the pages it frees
 * (a hardened process zeroes blocks, but not on such pages: inherited.h).
 *
 * An arena has the slabs of every size class. At any time one thread holds it, allocates from it and frees into it by
 * plain loads and stores, without locks. A thread that needs an arena takes over one whose holder is not inside it: under
 * Ruby's GVL all threads use the same arena in turn (arena.h). Threads that run in parallel get arenas of their own.
 *
 * A slab's blocks form units of 64, each with a word of free bits. The holder takes the lowest free bit of the class's
 * current unit, and sets the bit again in a free. A thread that holds another arena sets the bit in the unit's `remote`
 * word by an atomic; the holder collects these words when it needs blocks.
 *
 * Block states, by the block's bits in (free, remote):
 *     live   (0, 0)   in use by the program
 *     remote (0, 1)   freed by a thread that does not hold the arena
 *     free   (1, 0)   the arena's holder may hand it out
 * A free of a block that is not live is a misuse and is reported, at once or with deferred frees (culet_bin_defer_free).
 *
 * Invariants (culet_heap_check):
 *     free & remote == 0; behind the slab's last block free is 0 and remote is 1
 *     a unit with a free block is current, or recent, or its bit in `available` is set     [holder]
 *     all pages of a slab have the pagemap entry that its descriptor makes (culet_entry_of)  [holder]
 *     a slab is in its class's list <=> available != 0                                     [holder]
 *     a claimed block is neither free nor remote in its slab, whose class's current slab it is [holder]
 *     used pages of a segment == pages of its slabs, with guards, + those of its large blocks  [pages lock]
 *     dirty & used == 0, in each segment                                                   [pages lock]
 *
 * "holder" means: only the thread that holds the arena and is inside it (arena.h) reads or writes the member.
 *
 * Lock order: purge -> arena locks, in order of their numbers -> a thread's revocation -> pages -> meta -> quarantine. A fork takes
 * glibc's lock on open streams before all of these (heap.c).
 *
 * culet-scope reads these structures from another process through selfmap.h: add new structures that hold blocks, free
 * pages or descriptors there.
 *
 * When freed memory goes back to the kernel: reclaim_policy.h. */
#pragma once

#include "list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#define CULET_UNIT 64            /* blocks per unit; the last unit of a slab may have fewer */
#define CULET_UNITS 16           /* units per slab, at most */
#define CULET_SLAB_PAGES 32      /* pages per slab, at most; */
#define CULET_TINY_SLAB_PAGES 16 /* of a class up to CULET_TINY_MAX */
#define CULET_ARENAS 64          /* arenas, at most */

#define CULET_CACHE_LINE 64 /* bytes */
#define CULET_COLOURS_MAX (CULET_TINY_MAX / CULET_CACHE_LINE)

#define CULET_SEGMENT_PAGES 1024 /* 4 MiB */
#define CULET_SEGMENT_BYTES (CULET_SEGMENT_PAGES * CULET_PAGE)
#define CULET_SEGMENTS (1u << 18) /* 1 TiB of slabs and large blocks */

/* A futex: 0 free, otherwise the number of the thread that holds it, times 4, plus 1, or 2 if there are waiters. */
struct culet_lock {
    _Atomic uint32_t state;
};

/* The shape of a size class; constant after set-up. */
struct culet_class {
    uint64_t reciprocal; /* ceil(2^64 / size): the upper half of offset * reciprocal is offset / size */
    uint32_t size;       /* bytes per block */
    uint16_t count;      /* blocks per slab */
    uint8_t pages;       /* per slab */
    uint8_t colours;     /* cache lines that a slab's first block may begin at, less one (culet_class_colour) */
};

enum culet_kind { CULET_SLAB = 1, CULET_LARGE = 2, CULET_HUGE = 3 };

/* The head of every descriptor that the pagemap leads to. Descriptors are type-stable: their memory is reused for the
 * same kind only, so a late reader sees an old or a new descriptor, never other data. */
struct culet_span {
    uintptr_t start; /* address of the first block, of a slab some cache lines behind its first page's */
    _Atomic uint8_t kind;
    _Atomic uint8_t klass; /* size class of a slab, else 0 */
    _Atomic uint8_t arena; /* of a slab: the number of its arena, as in the pagemap */
    uint8_t purge_epoch;   /* of a slab: that of the arena when it was last used [holder] */
    uint32_t segment;      /* of a slab or large block */
};

/* The free bits of up to 64 blocks. */
struct culet_unit {
    _Atomic uint64_t free; /* written by the arena's holder alone */
    /* Blocks that other threads freed, until the holder collects them. Bits that stand for no block are always set: so a
     * block that does not exist is not live, and a word of 64 ones means that no block of the unit is live. */
    _Atomic uint64_t remote;
};

/* The head and the first two units share a cache line; so a free in a slab of up to 128 blocks touches no other. */
struct culet_slab {
    struct culet_span span;
    uint64_t reciprocal;           /* that of the class; 0 once the slab is destroyed */
    uint32_t usable;               /* bytes of a block */
    uint16_t available;            /* bit per unit: has a free block, and is neither current nor recent [holder] */
    _Atomic uint16_t remote_units; /* bit per unit: has blocks that other threads freed */
    struct culet_unit unit[CULET_UNITS];
    struct culet_slab *next; /* the class's list of slabs with available units [holder] */
    struct culet_slab *prev;
    struct culet_slab *next_remote; /* the arena's stack of slabs with remote units */
    uint32_t dirty;                 /* bit per page: may be resident [holder] */
    bool purging;                   /* a purge has taken pages: it keeps the slab, in this arena [holder] */
};
_Static_assert(offsetof(struct culet_slab, unit[2]) == 64, "the first units are in the head's cache line");
_Static_assert(CULET_SLAB_PAGES <= 32, "`dirty` has a bit per page");

/* A large block (a range of pages) or a huge one (a mapping). [pages lock] */
struct culet_large {
    struct culet_span span;
    uint32_t mapping;             /* of a huge block: blocks cut from one mapping have the same number (huge_cache.h) */
    uint32_t guard;               /* of a guarded one: inaccessible kernel pages on either side; else 0 (harden.h) */
    size_t bytes;                 /* a multiple of the page, for a huge block of the kernel's page */
    bool ending;                  /* a huge block that is freed, but still mapped */
    uint16_t usable;              /* of a sampled block that would have been in a slab: its usable bytes; else 0 */
    uint32_t sample;              /* number in the profile, or 0 [who uses the block] */
    LIST_ENTRY(culet_large) link; /* huge blocks are listed, to find the one that contains an address */
};

/* 4 MiB from the kernel. [pages lock] */
struct culet_segment {
    uintptr_t base;
    uint32_t free; /* pages */
    uint64_t used[CULET_SEGMENT_PAGES / 64];
    uint64_t dirty[CULET_SEGMENT_PAGES / 64]; /* free, and may be resident */
};

#define CULET_RECENT 16 /* a power of two */

/* Frees are deferred in an arena once it has a slab in this segment, at 64 MiB: then descriptors are mostly not in the
 * processor's cache, and waiting for several at a time is what saves time. */
#define CULET_DEFERRING_SEGMENT 16
#define CULET_DEFERRED 8

/* The unit that an arena hands out blocks of a class from. */
struct culet_current {
    struct culet_unit *unit; /* or &culet_no_unit, which has no free block */
    uintptr_t base;          /* address of the unit's first block */
    uint64_t size;           /* bytes per block */
    struct culet_slab *slab; /* or NULL */
};

/* The slabs of a size class in an arena; full slabs are known to the pagemap only. [holder] */
struct culet_bin {
    _Atomic(struct culet_slab *) first; /* slabs with available units */
    struct culet_slab *last;
    struct culet_slab *unvisited; /* the next that a purge visits; a slab that leaves the list hands this on [holder] */
    /* Counts, modulo 2^16. A request or a free changes one of them, by one store: a signal handler that forks in the
     * middle of it finds only entries that were added. */
    _Atomic uint16_t recents_added, recents_taken;
    uint8_t releases;          /* times the last slab was destroyed in a small heap */
    _Atomic uint8_t adoptions; /* times another arena adopted the current slab since the last purge */
    _Atomic bool has_unit;     /* a unit has become current, and may have free blocks */
    /* A queue of units that got a free block lately, or are resident beside one that became current: slab address + unit
     * number. They are used first, because their
     * descriptors are in the processor's cache; the oldest first, because frees have given it more blocks by now. A unit
     * with one block is full again at once, and then neither the branch that the next free in it takes nor that of the
     * next request is the one that the processor predicts. */
    uintptr_t recent[CULET_RECENT];
};

struct culet_thread;

/* While the profile runs, the current unit of a class is `unit`: blocks that were taken out of the free word of a slab's
 * unit, to be handed out. Frees go to the slab's unit. So each request is counted. [holder] */
struct culet_claim {
    struct culet_unit unit;    /* `remote` is not used */
    struct culet_unit *source; /* the slab's unit */
    uint64_t until;            /* unclaimed requests up to the next sample, itself included; 0: not drawn */
};

struct culet_arena {
    uint8_t purge_epoch;          /* purges of idle slabs that have ended, modulo 256 [holder] */
    uint8_t number;               /* CULET_ARENAS for the placeholder of threads that hold none */
    uint8_t tag;                  /* low byte of the pagemap entries of the arena's slabs, or CULET_ENTRY_NO_TAG */
    uint8_t deferred_tag;         /* that byte while frees are deferred, when `tag` has none; or CULET_ENTRY_NO_TAG */
    _Atomic bool taken_for_purge; /* held for a purge, or frozen for a fork, for microseconds */
    _Atomic bool active;          /* used since the last purge [holder] */
    _Atomic uint32_t changes;     /* units used up or made available, to tell whether it is in use [holder] */
    struct culet_lock lock;       /* guards changes of `holder` */
    _Atomic(struct culet_thread *) holder;       /* or NULL                              [lock] */
    struct culet_current current[CULET_CLASSES]; /* [holder, as bin] */
    struct culet_bin bin[CULET_CLASSES];
    uint32_t deferrals;
    void *deferred[CULET_DEFERRED]; /* freed blocks whose bits are still those of live ones [holder] */
    uint32_t seen[CULET_ARENAS];    /* `changes` of the others when this one last looked there [holder] */
    _Alignas(64) _Atomic(struct culet_slab *) remote; /* stack of slabs with remote units, linked by next_remote */
    uint32_t profile;                                 /* number of the profile that `claim` is for [holder] */
    struct culet_claim claim[CULET_CLASSES];          /* not touched until the profile runs [holder] */
};

/* REGISTERED: the thread's arena is released when it ends. ENDING, or it could not be registered: it releases its arena
 * whenever it leaves. */
enum culet_thread_life { CULET_THREAD_NEW, CULET_THREAD_REGISTERED, CULET_THREAD_ENDING };

/* ACQUIRING: the thread has found that it holds no arena, and uses none until it is INSIDE. */
enum culet_thread_busy { CULET_OUTSIDE, CULET_INSIDE, CULET_ACQUIRING };

/* Per thread, in thread-local storage. Another thread reads `busy` and writes `arena` in a take-over (arena.h). */
struct culet_thread {
    _Atomic(struct culet_arena *) arena; /* the arena that the thread holds, or &culet_arena_none */
    _Atomic uint32_t busy;               /* enum culet_thread_busy */
    uint8_t overlaps;                    /* times that another thread was inside the preferred arena, or about to be */
    uint8_t acquisitions;
    uint8_t life;                  /* enum culet_thread_life */
    bool collided;                 /* the last take-over took an arena from a thread that was acquiring one */
    uint32_t refills;              /* slow-path requests up to the next check of a small heap */
    struct culet_lock revocation;  /* held while another thread takes the arena over */
    struct culet_arena *preferred; /* NULL: arena 0 */
    _Atomic(struct culet_arena *) adopted_from; /* the thread's arena that another one took to adopt a slab; or NULL */
};
