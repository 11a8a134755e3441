#include "reading/reading.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/values.h"
#include "reading/malloc_stats.h"
#include "reading/process.h"
#include "reading/ruby_stats.h"

#define GROUP_FILES 4

const char *const culet_reading_names[CULET_READING_FIELDS] = {
    "resident_bytes",
    "shared_bytes",
    "rollup_time",
    "pss_bytes",
    "private_dirty_bytes",
    "swapped_bytes",
    "anonymous_bytes",
    "malloc_time",
    "malloc_used_bytes",
    "malloc_free_bytes",
    "malloc_metadata_bytes",
    "ruby_time",
    "live_slots",
    "slots",
    "ruby_page_bytes",
    "collections",
    "major_gcs",
    "malloc_increase_bytes",
    "oldmalloc_increase_bytes",
    "allocated_objects",
    "group_charged_bytes",
    "group_limit_bytes",
    "group_reclaimable_bytes",
    "group_kills",
    "group_stall",
    "running",
    "events",
    "profile_bytes",
    "processor_time",
    "minor_gcs",
    "gc_milliseconds",
    "trims",
    "trim_returned_bytes",
    "profile",
    "limit",
};

static const struct culet_pace at_once = {0, 0};
static uint64_t ruby_page_bytes; /* 0: unknown */
static _Atomic uint64_t last_resident;

/* ---- encodings ---- */

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
        if (values[i] != CULET_UNKNOWN)
            length += (size_t)snprintf(text + length, CULET_READING_JSON_BYTES - length, "%c\"%s\":%" PRIu64,
                                       length == 0 ? '{' : ',', culet_reading_names[i], values[i]);
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
    memset(&reader->reading, 0xff, sizeof(reader->reading)); /* CULET_UNKNOWN has all bits set */
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
    if (reader->folder == NULL)
        atomic_store_explicit(&last_resident, sizes.resident, memory_order_relaxed);
}

uint64_t culet_last_resident_bytes(void)
{
    return atomic_load_explicit(&last_resident, memory_order_relaxed);
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
}

/* ---- Culet::Reading ---- */

static struct culet_kernel_file file_of(VALUE path)
{
    struct culet_kernel_file file = {.descriptor = -1};

    const char *text = NIL_P(path) ? "" : StringValueCStr(path);

    if (strlen(text) < sizeof(file.path))
        memcpy(file.path, text, strlen(text) + 1);
    return file;
}

struct culet_group culet_group_of(VALUE files)
{
    Check_Type(files, T_ARRAY);
    if (RARRAY_LEN(files) != GROUP_FILES)
        rb_raise(rb_eArgError, "%d files are needed", GROUP_FILES);
    return (struct culet_group){.charged = file_of(rb_ary_entry(files, 0)),
                                .limit = file_of(rb_ary_entry(files, 1)),
                                .stat = file_of(rb_ary_entry(files, 2)),
                                .kills = file_of(rb_ary_entry(files, 3))};
}

static VALUE hash_of(const struct culet_reading *reading)
{
    uint64_t values[CULET_READING_FIELDS];
    VALUE hash = rb_hash_new();

    memcpy(values, reading, sizeof(values));
    for (size_t i = 0; i < CULET_READING_FIELDS; i++)
        if (values[i] != CULET_UNKNOWN)
            rb_hash_aset(hash, rb_str_new_cstr(culet_reading_names[i]), ULL2NUM(values[i]));
    if (culet_reading_used(reading) != CULET_UNKNOWN)
        rb_hash_aset(hash, rb_str_new_cstr("group_used_bytes"), ULL2NUM(culet_reading_used(reading)));
    return hash;
}

/* Culet::Reading.read(folder, files): what the kernel says of a process and of its control group, a Hash of the known
 * members of FIELDS and "group_used_bytes". folder: /proc/PID, or one with copies of its files. files: as of
 * culet_group_of. */
static VALUE reading_read(VALUE self, VALUE folder, VALUE files)
{
    struct culet_reader reader = {.folder = StringValueCStr(folder), .group = culet_group_of(files)};

    culet_reader_reset(&reader);
    culet_reader_sizes(&reader);
    culet_reader_rollup(&reader, at_once);
    culet_reader_group(&reader);
    culet_reader_group_used(&reader, at_once);
    RB_GC_GUARD(folder);
    return hash_of(&reader.reading);
}

void culet_init_reading(VALUE culet)
{
    VALUE reading = rb_define_module_under(culet, "Reading"), names = rb_ary_new();

    culet_ruby_stats_prepare();
    for (size_t i = 0; i < CULET_READING_FIELDS; i++)
        rb_ary_push(names, rb_obj_freeze(rb_str_new_cstr(culet_reading_names[i])));
    rb_define_const(reading, "FIELDS", rb_ary_freeze(names));
    rb_define_const(reading, "REST_PER_COST", INT2FIX(CULET_REST_PER_COST));
    rb_define_singleton_method(reading, "read", reading_read, 2);
}
