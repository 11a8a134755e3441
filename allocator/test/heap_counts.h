/* heap_counts.h - a count of the heap for tests, independent of culet_stats. */
#pragma once

#include "arena.h"
#include "bin.h"
#include "heap.h"
#include "lock.h"
#include "meta.h"
#include "slab.h"

#include <string.h>

struct bin_counts {
    size_t slabs;
    size_t blocks; /* in all of its slabs */
    size_t live;
    size_t remote; /* freed by other threads, and not collected yet */
};

struct heap_counts {
    struct bin_counts bins[CULET_CLASSES];
    struct culet_pages_stats pages;
    struct culet_large_stats large;
    size_t meta_bytes;
    size_t threads;
    size_t used_bytes;   /* used by the program, whole blocks */
    size_t mapped_bytes; /* segments and huge blocks */
};

static inline void count_slab(struct culet_slab *slab, void *data)
{
    struct bin_counts *counts = (struct bin_counts *)data + slab->span.klass;

    counts->slabs++;
    counts->blocks += culet_slab_class(slab)->count;
    for (unsigned u = 0; u < culet_class_units(culet_slab_class(slab)); u++) {
        uint64_t all = culet_class_all(culet_slab_class(slab), u);
        counts->live += (size_t)__builtin_popcountll(all & ~culet_unit_unused(&slab->unit[u]));
        counts->remote += (size_t)__builtin_popcountll(slab->unit[u].remote & all);
    }
}

/* Only while no other thread allocates or frees. */
static inline void count_heap(struct heap_counts *counts)
{
    memset(counts, 0, sizeof *counts);
    culet_lock(&culet_pages_lock);
    culet_slab_each(count_slab, counts->bins);
    counts->pages = culet_pages_stats();
    culet_unlock(&culet_pages_lock);
    /* Blocks that are claimed for the profile are free. */
    for (unsigned i = 0; culet_bin_profiled() && i < culet_arena_count(); i++)
        for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
            counts->bins[klass].live -= (size_t)__builtin_popcountll(culet_arena(i)->claim[klass].unit.free);
    counts->large = culet_large_stats();
    counts->meta_bytes = culet_meta_bytes();
    counts->threads = culet_arena_threads();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        counts->used_bytes += counts->bins[klass].live * culet_classes[klass].size;
    counts->used_bytes += counts->large.large_bytes + counts->large.huge_bytes;
    counts->mapped_bytes = counts->pages.segments * CULET_SEGMENT_BYTES + counts->large.huge_bytes;
}
