#include "agent/figures.h"

#include <inttypes.h>
#include <ruby.h>
#include <stdio.h>
#include <time.h>

#include "common/job.h"
#include "common/ruby_stats.h"
#include "common/stats.h"
#include "common/values.h"
#include "limit/watch.h"
#include "profile/ruby_profile.h"
#include "trim/trimmer.h"

#define SHARE 10000 /* counting malloc's blocks may take this part of the time */

static const struct {
    const char *name;
    enum culet_ruby_stat stat;
} ruby_figures[] = {
    {"collections", CULET_RUBY_COLLECTIONS},   {"minor_gcs", CULET_RUBY_MINORS},
    {"major_gcs", CULET_RUBY_MAJORS},          {"gc_milliseconds", CULET_RUBY_MILLISECONDS},
    {"live_slots", CULET_RUBY_LIVE_SLOTS},     {"slots", CULET_RUBY_SLOTS},
    {"allocated_objects", CULET_RUBY_OBJECTS},
};

static uint64_t page_bytes; /* of Ruby's heap; 0: unknown */

/* What the last count of malloc's blocks found, and when the next is due. */
static struct {
    struct culet_malloc_sums sums;
    int known;
    uint64_t due;
} heap;

static void note(void *unused)
{
    culet_ruby_stats_note();
}

static struct culet_job job = {.function = note};
static bool has_job;

/* A text that grows in a buffer of CULET_FIGURES_BYTES, which has room for all figures. */
struct text {
    char *bytes;
    size_t length;
};

static void add(struct text *text, const char *name, uint64_t value)
{
    if (value != CULET_RUBY_UNKNOWN)
        text->length += (size_t)snprintf(text->bytes + text->length, CULET_FIGURES_BYTES - text->length,
                                         "%c\"%s\":%" PRIu64, text->length == 0 ? '{' : ',', name, value);
}

static void add_ruby(struct text *text)
{
    uint64_t pages = culet_ruby_stat_noted(CULET_RUBY_PAGES);

    for (size_t i = 0; i < sizeof(ruby_figures) / sizeof(ruby_figures[0]); i++)
        add(text, ruby_figures[i].name, culet_ruby_stat_noted(ruby_figures[i].stat));
    if (pages != CULET_RUBY_UNKNOWN && page_bytes > 0)
        add(text, "ruby_page_bytes", pages * page_bytes);
}

static uint64_t monotonic(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static void add_malloc(struct text *text)
{
    uint64_t began = monotonic(), ended;

    if (began >= heap.due) {
        heap.known = culet_malloc_sums(&heap.sums);
        ended = monotonic();
        heap.due = ended + (ended - began) * SHARE;
    }
    if (!heap.known)
        return;
    add(text, "malloc_used_bytes", heap.sums.used);
    add(text, "malloc_free_bytes", heap.sums.free);
    add(text, "malloc_metadata_bytes", heap.sums.metadata);
}

static void add_trims(struct text *text)
{
    uint64_t returned, trims = culet_trimmer_totals(&returned);

    add(text, "trims", trims);
    add(text, "trim_returned_bytes", returned);
}

size_t culet_figures_write(char *bytes)
{
    struct text text = {bytes, 0};

    add_ruby(&text);
    add_malloc(&text);
    add_trims(&text);
    add(&text, "profile", (uint64_t)culet_profile_running());
    add(&text, "limit", culet_watch_runs() ? 1 : 0);
    bytes[text.length++] = '}';
    return text.length;
}

void culet_figures_refresh(void)
{
    if (has_job)
        culet_job_trigger(&job);
}

void culet_figures_reset(void)
{
    heap.due = 0;
}

void culet_figures_prepare(void)
{
    VALUE constants = rb_const_get(rb_mGC, rb_intern("INTERNAL_CONSTANTS"));
    VALUE bytes = rb_hash_aref(constants, culet_symbol("HEAP_PAGE_SIZE"));

    page_bytes = RB_INTEGER_TYPE_P(bytes) ? NUM2ULL(bytes) : 0;
    culet_ruby_stats_prepare();
    has_job = culet_job_prepare(&job);
}
