#include "regions/histogram.h"

#include "output/json.h"

#include <inttypes.h>

#define STEP CULET_HISTOGRAM_STEP
#define EXACT CULET_HISTOGRAM_EXACT
#define EXACT_BUCKETS (EXACT / STEP)

static unsigned bucket_of(uint64_t bytes)
{
    if (bytes < EXACT)
        return (unsigned)(bytes / STEP);
    unsigned doubling = 63 - (unsigned)__builtin_clzll(bytes), eighth = (unsigned)(bytes >> (doubling - 3)) & 7;
    unsigned bucket = EXACT_BUCKETS + (doubling - 10) * 8 + eighth;

    return bucket < CULET_HISTOGRAM_BUCKETS ? bucket : CULET_HISTOGRAM_BUCKETS - 1;
}

/* The smallest size of a bucket. */
static uint64_t bytes_of(unsigned bucket)
{
    if (bucket < EXACT_BUCKETS)
        return (uint64_t)bucket * STEP;
    unsigned step = bucket - EXACT_BUCKETS;

    return (UINT64_C(8) + step % 8) << (step / 8 + 7);
}

void culet_histogram_add(struct culet_histogram *histogram, enum culet_block_state state, uint64_t bytes,
                         uint64_t count)
{
    histogram->bucket[bucket_of(bytes)][state].count += count;
    histogram->bucket[bucket_of(bytes)][state].bytes += count * bytes;
}

void culet_histogram_add_small(struct culet_histogram *histogram, struct culet_small_sizes *small)
{
    for (unsigned i = 0; i < EXACT_BUCKETS; i++)
        culet_histogram_add(histogram, CULET_BLOCK_USED, (uint64_t)i * STEP, small->count[i]);
    *small = (struct culet_small_sizes){0};
}

void culet_histogram_merge(struct culet_histogram *to, const struct culet_histogram *from)
{
    for (unsigned i = 0; i < CULET_HISTOGRAM_BUCKETS; i++)
        for (unsigned state = CULET_BLOCK_USED; state <= CULET_BLOCK_FREE; state++) {
            to->bucket[i][state].count += from->bucket[i][state].count;
            to->bucket[i][state].bytes += from->bucket[i][state].bytes;
        }
}

void culet_histogram_write(const struct culet_histogram *histogram)
{
    struct culet_buffer buckets = {0};
    struct culet_json json;

    culet_buffer_print(&buckets, "[");
    for (unsigned i = 0; i < CULET_HISTOGRAM_BUCKETS; i++) {
        const struct culet_histogram_sum *used = &histogram->bucket[i][CULET_BLOCK_USED],
                                         *free = &histogram->bucket[i][CULET_BLOCK_FREE];
        if (used->count || free->count)
            culet_buffer_print(&buckets, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                               buckets.length > 1 ? "," : "", bytes_of(i), used->count, used->bytes, free->count,
                               free->bytes);
    }
    culet_buffer_print(&buckets, "]");
    culet_buffer_byte(&buckets, 0);
    culet_json_begin(&json, "sizes");
    culet_json_raw(&json, "buckets", (const char *)buckets.bytes);
    culet_json_end(&json);
    culet_buffer_free(&buckets);
}
