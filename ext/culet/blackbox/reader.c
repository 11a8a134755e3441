#include "blackbox/reader.h"

#include <stdatomic.h>

#include "reading/ruby_stats.h"

#define RUBY_NANOSECONDS UINT64_C(500000000)

/* A reading takes a part of the time. Between two seconds that may be a larger one: the process is about to be killed. */
static const struct culet_pace each_second = {1000, UINT64_C(900000000)}, between_seconds = {50, 0};

static struct culet_group_paths group_paths;
static struct culet_reader reader; /* of the thread */
static _Atomic uint64_t last_resident;

void culet_box_reader_note_ruby(uint64_t now)
{
    if (now - culet_ruby_stats_time() > RUBY_NANOSECONDS)
        culet_ruby_stats_note();
}

static struct culet_reading finish(void)
{
    culet_reader_sizes(&reader);
    culet_reader_ruby(&reader);
    atomic_store(&last_resident, reader.reading.resident);
    return reader.reading;
}

struct culet_reading culet_box_reader_second(void)
{
    culet_reader_rollup(&reader, each_second);
    culet_reader_malloc(&reader, each_second);
    culet_reader_group(&reader);
    culet_reader_group_used(&reader, each_second);
    return finish();
}

struct culet_reading culet_box_reader_fast(void)
{
    culet_reader_malloc(&reader, between_seconds);
    culet_reader_group_used(&reader, between_seconds);
    return finish();
}

uint64_t culet_box_reader_resident(void)
{
    return atomic_load_explicit(&last_resident, memory_order_relaxed);
}

void culet_box_reader_reset(void)
{
    culet_reader_reset(&reader);
}

static struct culet_kernel_file file_of(const char *path)
{
    return (struct culet_kernel_file){-1, path};
}

void culet_box_reader_prepare(const struct culet_group_paths *paths)
{
    group_paths = *paths;
    reader.group = (struct culet_group){.charged = file_of(group_paths.charged),
                                        .limit = file_of(group_paths.limit),
                                        .stat = file_of(group_paths.stat),
                                        .kills = file_of(group_paths.kills),
                                        .pressure = file_of(group_paths.pressure)};
    culet_reader_reset(&reader);
    culet_reading_prepare();
}
