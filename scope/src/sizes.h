/* sizes.h - how many blocks there are of each size, and how long the runs of free pages are: the histograms. */
#ifndef CULET_SIZES_H
#define CULET_SIZES_H

#include "place.h"

/* Exact up to 1 KiB in steps of 16; then eight buckets per doubling. */
#define CULET_SIZES_BUCKETS 512
#define CULET_SIZES_STEP 16u
#define CULET_SIZES_EXACT 1024u

struct culet_sizes {
    struct {
        uint64_t used_count, used_bytes, free_count, free_bytes;
    } bucket[CULET_SIZES_BUCKETS];
};

/* How many used blocks there are of each size below 1 KiB, for whoever counts millions: the index is the size / 16. */
struct culet_small_sizes {
    uint64_t count[CULET_SIZES_EXACT / CULET_SIZES_STEP];
};

/* Adds these to the used ones, and empties them. */
void culet_sizes_take(struct culet_sizes *sizes, struct culet_small_sizes *small);

/* `count` blocks of `bytes` each are used, or free. */
void culet_sizes_used(struct culet_sizes *sizes, uint64_t bytes, uint64_t count);
void culet_sizes_free(struct culet_sizes *sizes, uint64_t bytes, uint64_t count);

/* Writes the record "sizes". */
void culet_sizes_tell(const struct culet_sizes *sizes);

/* Writes the record "freeruns": of all regions of malloc's, metadata aside. */
void culet_freeruns_tell(const struct culet_places *places);

#endif
