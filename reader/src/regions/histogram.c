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

void culet_histogram_add_used(struct culet_histogram *histogram, uint64_t bytes, uint64_t count)
{
    histogram->bucket[bucket_of(bytes)].used_count += count;
    histogram->bucket[bucket_of(bytes)].used_bytes += count * bytes;
}

void culet_histogram_add_free(struct culet_histogram *histogram, uint64_t bytes, uint64_t count)
{
    histogram->bucket[bucket_of(bytes)].free_count += count;
    histogram->bucket[bucket_of(bytes)].free_bytes += count * bytes;
}

void culet_histogram_add_small(struct culet_histogram *histogram, struct culet_small_sizes *small)
{
    for (unsigned i = 0; i < EXACT_BUCKETS; i++)
        culet_histogram_add_used(histogram, (uint64_t)i * STEP, small->count[i]);
    *small = (struct culet_small_sizes){0};
}

void culet_histogram_add(struct culet_histogram *to, const struct culet_histogram *from)
{
    for (unsigned i = 0; i < CULET_HISTOGRAM_BUCKETS; i++) {
        to->bucket[i].used_count += from->bucket[i].used_count;
        to->bucket[i].used_bytes += from->bucket[i].used_bytes;
        to->bucket[i].free_count += from->bucket[i].free_count;
        to->bucket[i].free_bytes += from->bucket[i].free_bytes;
    }
}

static void write_buckets(const char *kind, struct culet_buffer *buckets)
{
    struct culet_json json;

    culet_buffer_print(buckets, "]");
    culet_buffer_byte(buckets, 0);
    culet_json_begin(&json, kind);
    culet_json_raw(&json, "buckets", (const char *)buckets->bytes);
    culet_json_end(&json);
    culet_buffer_free(buckets);
}

void culet_histogram_write(const struct culet_histogram *histogram)
{
    struct culet_buffer buckets = {0};

    culet_buffer_print(&buckets, "[");
    for (unsigned i = 0; i < CULET_HISTOGRAM_BUCKETS; i++) {
        if (!histogram->bucket[i].used_count && !histogram->bucket[i].free_count)
            continue;
        culet_buffer_print(&buckets, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                           buckets.length > 1 ? "," : "", bytes_of(i), histogram->bucket[i].used_count,
                           histogram->bucket[i].used_bytes, histogram->bucket[i].free_count,
                           histogram->bucket[i].free_bytes);
    }
    write_buckets("sizes", &buckets);
}

/* ---- runs of free pages, in buckets by powers of two ---- */

#define RUN_BUCKETS 40

struct runs {
    uint64_t count[RUN_BUCKETS], resident[RUN_BUCKETS];
};

/* The current run of free pages. */
struct free_run {
    uint64_t pages, resident;
};

static void end_run(struct runs *runs, struct free_run *run)
{
    if (run->pages) {
        unsigned bucket = 63 - (unsigned)__builtin_clzll(run->pages);
        if (bucket >= RUN_BUCKETS)
            bucket = RUN_BUCKETS - 1;
        runs->count[bucket]++;
        runs->resident[bucket] += run->resident;
    }
    *run = (struct free_run){0};
}

static void add_region(struct runs *runs, const struct culet_region *region)
{
    struct culet_page_run pages;
    struct free_run run = {0};

    for (uint64_t i = 0; i < region->pages; i += pages.count) {
        pages = culet_region_page_run(region, i);
        if (!pages.used && pages.full)
            end_run(runs, &run);
        else if (!pages.used)
            run.pages += pages.count;
        for (uint64_t n = 0; pages.used && n < pages.count; n++) {
            if (pages.used[n]) {
                end_run(runs, &run);
                continue;
            }
            run.pages++;
            run.resident += pages.states[n] & CULET_PAGE_PRESENT;
        }
    }
    end_run(runs, &run);
}

void culet_free_runs_write(const struct culet_regions *regions)
{
    struct culet_buffer buckets = {0};
    struct runs runs = {0};

    for (size_t i = 0; i < regions->count; i++)
        if (regions->all[i]->malloc && !regions->all[i]->full)
            add_region(&runs, regions->all[i]);
    culet_buffer_print(&buckets, "[");
    for (unsigned i = 0; i < RUN_BUCKETS; i++)
        if (runs.count[i])
            culet_buffer_print(&buckets, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", buckets.length > 1 ? "," : "",
                               UINT64_C(1) << i, runs.count[i], runs.resident[i]);
    write_buckets("freeruns", &buckets);
}
