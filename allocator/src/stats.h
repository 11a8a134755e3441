/* stats.h - culet_stats: the allocator's own figures, for whoever looks it up with dlsym.
 *
 * What adds up, while no other thread uses the heap:
 *     mapped_bytes         == heap_bytes + large_bytes
 *     heap_bytes           == used_bytes + free_bytes
 *     heap_bytes           == slab_bytes + run_bytes + free_resident_bytes + free_returned_bytes
 *     blocks of a class    == used + free + cached
 *     used_bytes           == run_bytes + the sum of used * block_bytes
 *     cached_bytes         == the sum of cached * block_bytes
 * While others use it each figure is near. No caller of malloc or free waits for longer than it takes to count one
 * segment of 4 MiB. */
#ifndef CULET_STATS_H
#define CULET_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Entries of `class`, at least the size classes there are; those that are not used are all zero. */
#define CULET_STATS_CLASSES 128

struct culet_stats_class {
    uint64_t block_bytes; /* size of a block */
    uint64_t slabs;
    uint64_t used;   /* blocks that the program holds */
    uint64_t free;   /* blocks that any thread may take */
    uint64_t cached; /* blocks that a thread holds for its next requests */
};

/* New members are only ever added at the end; none is taken away or changes its meaning. */
struct culet_stats {
    uint64_t filled_bytes;        /* how much of this structure is filled: members behind it are not known */
    uint64_t mapped_bytes;        /* address space of the heap and the large blocks */
    uint64_t heap_bytes;          /* in segments */
    uint64_t used_bytes;          /* of the heap, blocks that the program holds: in slabs, and runs */
    uint64_t free_bytes;          /* the rest of the heap, resident or not */
    uint64_t cached_bytes;        /* of free_bytes, blocks that threads hold for their next requests */
    uint64_t slab_bytes;          /* of the heap, slabs */
    uint64_t run_bytes;           /* of the heap, runs: blocks of 32 KiB to 1 MiB */
    uint64_t free_resident_bytes; /* of the heap, neither slab nor run, and resident at the most */
    uint64_t free_returned_bytes; /* of the heap, neither slab nor run, and returned to the kernel or never touched */
    uint64_t large_bytes;         /* blocks with a mapping of their own */
    uint64_t descriptor_bytes;    /* mapped for descriptors, outside of the heap; the pagemap is not counted */
    uint64_t returned_bytes;      /* given back to the kernel since the start, large blocks aside */
    uint64_t segments;
    uint64_t runs;
    uint64_t large_blocks;
    uint64_t purges;  /* times that something was given back */
    uint64_t forks;   /* tried, by this process and by those it was forked from */
    uint64_t threads; /* that have a cache */
    uint64_t classes; /* entries of `class` that are filled */
    struct culet_stats_class class[CULET_STATS_CLASSES];
};

/* Fills *out.
 * bytes: sizeof *out as the caller knows it; a caller with an older header gets the older part.
 * Returns 0; or -1 with errno EINVAL when `bytes` is too small to hold filled_bytes, or ENOTSUP when culet is
 * dormant in this process and has no figures. Allocates nothing. Not for signal handlers. */
__attribute__((visibility("default"))) extern int culet_stats(struct culet_stats *out, size_t bytes);

#endif
