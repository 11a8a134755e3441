#include "reading/reading.h"

#include <inttypes.h>
#include <ruby.h>
#include <stdio.h>
#include <string.h>

#include "common/values.h"
#include "reading/malloc_stats.h"
#include "reading/process.h"
#include "reading/ruby_stats.h"

const struct culet_reading_field culet_reading_fields[CULET_READING_FIELDS] = {
    {"resident_bytes", false},
    {"shared_bytes", false},
    {"rollup_time", false},
    {"pss_bytes", false},
    {"private_dirty_bytes", false},
    {"swapped_bytes", false},
    {"anonymous_bytes", false},
    {"malloc_time", false},
    {"malloc_used_bytes", true},
    {"malloc_free_bytes", true},
    {"malloc_metadata_bytes", true},
    {"ruby_time", false},
    {"live_slots", true},
    {"slots", true},
    {"ruby_page_bytes", true},
    {"collections", true},
    {"major_gcs", true},
    {"malloc_increase_bytes", false},
    {"oldmalloc_increase_bytes", false},
    {"allocated_objects", true},
    {"group_charged_bytes", false},
    {"group_limit_bytes", false},
    {"group_reclaimable_bytes", false},
    {"group_kills", false},
    {"group_stall", false},
    {"running", false},
    {"events", false},
    {"profile_bytes", false},
    {"processor_time", false},
    {"minor_gcs", true},
    {"gc_milliseconds", true},
    {"trims", true},
    {"trim_returned_bytes", true},
    {"profile", true},
    {"limit", true},
};

static uint64_t ruby_page_bytes; /* 0: unknown */

/* ---- encodings ---- */

void culet_reading_clear(struct culet_reading *reading)
{
    memset(reading, 0xff, sizeof(*reading)); /* CULET_UNKNOWN has all bits set */
}

uint64_t culet_reading_used(const struct culet_reading *reading)
{
    return culet_group_used(reading->group_charged, reading->group_reclaimable);
}

size_t culet_reading_json(const struct culet_reading *reading, char *text)
{
    uint64_t values[CULET_READING_FIELDS];
    size_t length = 0;

    memcpy(values, reading, sizeof(values));
    for (size_t i = 0; i < CULET_READING_FIELDS; i++)
        if (culet_reading_fields[i].answered && values[i] != CULET_UNKNOWN)
            length += (size_t)snprintf(text + length, CULET_READING_JSON_BYTES - length, "%c\"%s\":%" PRIu64,
                                       length == 0 ? '{' : ',', culet_reading_fields[i].name, values[i]);
    if (length == 0)
        text[length++] = '{';
    text[length++] = '}';
    return length;
}

/* ---- readers ---- */

void culet_reading_prepare(void)
{
    VALUE constants = rb_const_get(rb_mGC, rb_intern("INTERNAL_CONSTANTS"));
    VALUE bytes = rb_hash_aref(constants, culet_symbol("HEAP_PAGE_SIZE"));

    ruby_page_bytes = RB_INTEGER_TYPE_P(bytes) ? NUM2ULL(bytes) : 0;
    culet_ruby_stats_prepare();
}

void culet_reader_reset(struct culet_reader *reader)
{
    reader->rollup = reader->malloc = reader->group_stat = (struct culet_budget){0, 0};
    culet_reading_clear(&reader->reading);
}

static bool is_due(const struct culet_budget *budget, struct culet_pace pace)
{
    return culet_clock(CLOCK_MONOTONIC) >= culet_budget_due(budget, pace.rest_per_cost, pace.least);
}

static const char *folder_of(const struct culet_reader *reader)
{
    return reader->folder != NULL ? reader->folder : CULET_OWN_PROCESS;
}

void culet_reader_sizes(struct culet_reader *reader)
{
    struct culet_sizes sizes;

    (void)culet_read_sizes(folder_of(reader), &sizes);
    reader->reading.resident = sizes.resident;
    reader->reading.shared = sizes.files;
}

void culet_reader_rollup(struct culet_reader *reader, struct culet_pace pace)
{
    struct culet_rollup rollup;
    uint64_t began = culet_clock(CLOCK_THREAD_CPUTIME_ID);

    if (!is_due(&reader->rollup, pace))
        return;
    (void)culet_read_rollup(folder_of(reader), &rollup);
    reader->reading.rollup_time = culet_clock(CLOCK_REALTIME);
    reader->reading.proportional = rollup.proportional;
    reader->reading.private_dirty = rollup.private_dirty;
    reader->reading.swapped = rollup.swapped;
    reader->reading.anonymous = rollup.anonymous;
    culet_budget_end(&reader->rollup, began);
}

void culet_reader_malloc(struct culet_reader *reader, struct culet_pace pace)
{
    struct culet_malloc_sums sums = {CULET_UNKNOWN, CULET_UNKNOWN, CULET_UNKNOWN};
    uint64_t began = culet_clock(CLOCK_THREAD_CPUTIME_ID);

    if (!is_due(&reader->malloc, pace))
        return;
    (void)culet_malloc_sums(&sums);
    reader->reading.malloc_time = culet_clock(CLOCK_REALTIME);
    reader->reading.malloc_used = sums.used;
    reader->reading.malloc_free = sums.free;
    reader->reading.malloc_metadata = sums.metadata;
    culet_budget_end(&reader->malloc, began);
}

void culet_reader_ruby(struct culet_reader *reader)
{
    struct culet_reading *reading = &reader->reading;
    uint64_t pages = culet_ruby_stat_noted(CULET_RUBY_PAGES);

    reading->ruby_time = culet_ruby_stats_time();
    reading->live_slots = culet_ruby_stat_noted(CULET_RUBY_LIVE_SLOTS);
    reading->slots = culet_ruby_stat_noted(CULET_RUBY_SLOTS);
    reading->ruby_pages = pages == CULET_UNKNOWN || ruby_page_bytes == 0 ? CULET_UNKNOWN : pages * ruby_page_bytes;
    reading->collections = culet_ruby_stat_noted(CULET_RUBY_COLLECTIONS);
    reading->minor_gcs = culet_ruby_stat_noted(CULET_RUBY_MINORS);
    reading->major_gcs = culet_ruby_stat_noted(CULET_RUBY_MAJORS);
    reading->gc_milliseconds = culet_ruby_stat_noted(CULET_RUBY_MILLISECONDS);
    reading->malloc_increase = culet_ruby_stat_noted(CULET_RUBY_MALLOC_INCREASE);
    reading->oldmalloc_increase = culet_ruby_stat_noted(CULET_RUBY_OLDMALLOC_INCREASE);
    reading->allocated_objects = culet_ruby_stat_noted(CULET_RUBY_OBJECTS);
}

void culet_reader_group_used(struct culet_reader *reader, struct culet_pace pace)
{
    uint64_t began = culet_clock(CLOCK_THREAD_CPUTIME_ID);

    reader->reading.group_charged = culet_kernel_file_number(&reader->group.charged);
    if (!is_due(&reader->group_stat, pace))
        return;
    reader->reading.group_reclaimable = culet_group_reclaimable(&reader->group);
    culet_budget_end(&reader->group_stat, began);
}

void culet_reader_group(struct culet_reader *reader)
{
    reader->reading.group_limit = culet_kernel_file_number(&reader->group.limit);
    reader->reading.group_kills = culet_group_kills(&reader->group);
    reader->reading.group_stall = culet_group_stall(&reader->group);
}
