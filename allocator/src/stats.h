/* stats.h - culet_stats: the allocator's statistics, found with dlsym.
 *
 * While no other thread uses the heap:
 *     mapped_bytes         == heap_bytes + large_bytes
 *     heap_bytes           == used_bytes + free_bytes
 *     heap_bytes           == slab_bytes + run_bytes + free_resident_bytes + free_returned_bytes
 *     blocks of a class    == used + free + cached
 *     used_bytes           == run_bytes + the sum of used * block_bytes
 *     cached_bytes         == the sum of cached * block_bytes
 * While others use it each number is approximate. No caller of malloc or free waits for longer than it takes to count
 * one segment of 4 MiB.
 *
 * The member names are part of the interface: "run" is what the sources call a large block (a range of pages, 32 KiB to
 * 1 MiB), and "large" what they call a huge block (a mapping of its own). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Entries of `class`, at least the number of size classes; unused ones are zero. */
#define CULET_STATS_CLASSES 128

struct culet_stats_class {
    uint64_t block_bytes; /* size of a block */
    uint64_t slabs;
    uint64_t used;   /* blocks that the program uses */
    uint64_t free;   /* blocks that any thread may take */
    uint64_t cached; /* always 0; kept for readers of older versions */
};

/* New members are added at the end only; none is removed or changes its meaning. */
struct culet_stats {
    uint64_t filled_bytes;        /* bytes of this structure that are filled; members behind them are unknown */
    uint64_t mapped_bytes;        /* address space of the heap and the huge blocks */
    uint64_t heap_bytes;          /* in segments */
    uint64_t used_bytes;          /* of the heap: blocks that the program uses, in slabs and large blocks */
    uint64_t free_bytes;          /* the rest of the heap, resident or not */
    uint64_t cached_bytes;        /* always 0 */
    uint64_t slab_bytes;          /* of the heap: slabs */
    uint64_t run_bytes;           /* of the heap: blocks of 32 KiB to 1 MiB */
    uint64_t free_resident_bytes; /* of the heap: free pages that may be resident */
    uint64_t free_returned_bytes; /* of the heap: free pages returned to the kernel or never touched */
    uint64_t large_bytes;         /* blocks with a mapping of their own */
    uint64_t descriptor_bytes;    /* mapped for descriptors, outside of the heap, without the pagemap */
    uint64_t returned_bytes;      /* returned to the kernel since the start, huge blocks excluded */
    uint64_t segments;
    uint64_t runs;
    uint64_t large_blocks;
    uint64_t purges;  /* times that memory was returned */
    uint64_t forks;   /* attempted, by this process and those it was forked from */
    uint64_t threads; /* that have allocated and have not ended */
    uint64_t classes; /* entries of `class` that are filled */
    struct culet_stats_class class[CULET_STATS_CLASSES];
    uint64_t arenas; /* that threads have used */
    /* Of the heap and the huge blocks, as the kernel tells: in blocks that the program uses, and the rest. In slabs, free
     * memory is what is resident beyond the blocks in use. CULET_STATS_UNKNOWN without /proc/self/pagemap. */
    uint64_t used_resident_bytes;
    uint64_t unused_resident_bytes;
};

#define CULET_STATS_UNKNOWN UINT64_MAX

/* Fills *out.
 * bytes: sizeof *out as the caller knows it; a caller with an older header gets the older part.
 * Returns 0; or -1 with errno EINVAL if `bytes` is too small for filled_bytes, or ENOTSUP if culet is dormant in this
 * process. Allocates nothing. Not for signal handlers. */
__attribute__((visibility("default"))) extern int culet_stats(struct culet_stats *out, size_t bytes);
