/* histogram.h - histograms of block sizes and of runs of free pages. */
#pragma once

#include "regions/regions.h"

/* Exact below 1 KiB, in steps of 16; then eight buckets per doubling. */
#define CULET_HISTOGRAM_BUCKETS 512
#define CULET_HISTOGRAM_STEP 16u
#define CULET_HISTOGRAM_EXACT 1024u

struct culet_histogram {
    struct culet_histogram_sum {
        uint64_t count, bytes;
    } bucket[CULET_HISTOGRAM_BUCKETS][CULET_BLOCK_FREE + 1]; /* by state: used or free */
};

/* Counts of used blocks below 1 KiB, for loops over millions of blocks. The index is the size / 16. */
struct culet_small_sizes {
    uint64_t count[CULET_HISTOGRAM_EXACT / CULET_HISTOGRAM_STEP];
};

/* Adds `count` blocks of `bytes` each that are used, or free. */
void culet_histogram_add(struct culet_histogram *histogram, enum culet_block_state state, uint64_t bytes,
                         uint64_t count);

/* Adds the small blocks, and resets them. */
void culet_histogram_add_small(struct culet_histogram *histogram, struct culet_small_sizes *small);

void culet_histogram_merge(struct culet_histogram *to, const struct culet_histogram *from);

/* Writes the JSON record "sizes". */
void culet_histogram_write(const struct culet_histogram *histogram);
