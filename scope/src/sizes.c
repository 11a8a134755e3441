#include "sizes.h"

#include "../format.h"
#include "stream.h"

#include <inttypes.h>
#include <string.h>

#define STEP CULET_SIZES_STEP
#define EXACT CULET_SIZES_EXACT /* bytes; buckets of one size below */
#define EXACT_BUCKETS (EXACT / STEP)

static unsigned bucket_of(uint64_t bytes)
{
    if (bytes < EXACT)
        return (unsigned)(bytes / STEP);
    unsigned doubling = 63 - (unsigned)__builtin_clzll(bytes), eighth = (unsigned)(bytes >> (doubling - 3)) & 7;
    unsigned bucket = EXACT_BUCKETS + (doubling - 10) * 8 + eighth;

    return bucket < CULET_SIZES_BUCKETS ? bucket : CULET_SIZES_BUCKETS - 1;
}

/* The smallest size of a bucket. */
static uint64_t bytes_of(unsigned bucket)
{
    if (bucket < EXACT_BUCKETS)
        return (uint64_t)bucket * STEP;
    unsigned step = bucket - EXACT_BUCKETS;

    return (UINT64_C(8) + step % 8) << (step / 8 + 7);
}

void culet_sizes_used(struct culet_sizes *sizes, uint64_t bytes, uint64_t count)
{
    sizes->bucket[bucket_of(bytes)].used_count += count;
    sizes->bucket[bucket_of(bytes)].used_bytes += count * bytes;
}

void culet_sizes_free(struct culet_sizes *sizes, uint64_t bytes, uint64_t count)
{
    sizes->bucket[bucket_of(bytes)].free_count += count;
    sizes->bucket[bucket_of(bytes)].free_bytes += count * bytes;
}

void culet_sizes_take(struct culet_sizes *sizes, struct culet_small_sizes *small)
{
    for (unsigned i = 0; i < EXACT_BUCKETS; i++) {
        sizes->bucket[i].used_count += small->count[i];
        sizes->bucket[i].used_bytes += small->count[i] * i * STEP;
    }
    *small = (struct culet_small_sizes){0};
}

static void tell(const char *kind, struct culet_buffer *buckets)
{
    struct culet_json json;

    culet_buffer_print(buckets, "]");
    culet_buffer_byte(buckets, 0);
    culet_json_begin(&json, kind);
    culet_json_raw(&json, "buckets", (const char *)buckets->bytes);
    culet_json_end(&json);
    culet_buffer_free(buckets);
}

void culet_sizes_tell(const struct culet_sizes *sizes)
{
    struct culet_buffer buckets = {0};

    culet_buffer_print(&buckets, "[");
    for (unsigned i = 0; i < CULET_SIZES_BUCKETS; i++) {
        if (!sizes->bucket[i].used_count && !sizes->bucket[i].free_count)
            continue;
        culet_buffer_print(&buckets, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                           buckets.length > 1 ? "," : "", bytes_of(i), sizes->bucket[i].used_count,
                           sizes->bucket[i].used_bytes, sizes->bucket[i].free_count, sizes->bucket[i].free_bytes);
    }
    tell("sizes", &buckets);
}

/* ---- runs of free pages: buckets by powers of two ---- */

#define RUN_BUCKETS 40

struct runs {
    uint64_t count[RUN_BUCKETS], resident[RUN_BUCKETS];
};

static void add_run(struct runs *runs, uint64_t pages, uint64_t resident)
{
    if (!pages)
        return;
    unsigned bucket = 63 - (unsigned)__builtin_clzll(pages);
    if (bucket >= RUN_BUCKETS)
        bucket = RUN_BUCKETS - 1;
    runs->count[bucket]++;
    runs->resident[bucket] += resident;
}

/* A run of free pages that is not over. */
struct free_run {
    uint64_t pages, resident;
};

static void add_place(struct runs *runs, const struct culet_place *place)
{
    struct culet_place_run run;
    struct free_run open = {0};

    for (uint64_t i = 0; i < place->pages; i += run.count) {
        run = culet_place_run(place, i);
        if (!run.used && !run.full)
            open.pages += run.count;
        for (uint64_t n = 0; (run.used || run.full) && n < run.count; n++) {
            if (!run.full && !run.used[n]) {
                open.pages++;
                open.resident += run.states[n] & CULET_PAGE_PRESENT;
                continue;
            }
            add_run(runs, open.pages, open.resident);
            open = (struct free_run){0};
            if (run.full)
                break;
        }
    }
    add_run(runs, open.pages, open.resident);
}

void culet_freeruns_tell(const struct culet_places *places)
{
    struct culet_buffer buckets = {0};
    struct runs runs = {0};

    for (size_t i = 0; i < places->count; i++)
        if (places->all[i]->malloc && !places->all[i]->whole)
            add_place(&runs, places->all[i]);
    culet_buffer_print(&buckets, "[");
    for (unsigned i = 0; i < RUN_BUCKETS; i++)
        if (runs.count[i])
            culet_buffer_print(&buckets, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", buckets.length > 1 ? "," : "",
                               UINT64_C(1) << i, runs.count[i], runs.resident[i]);
    tell("freeruns", &buckets);
}
