#include "recorder/counters.h"

#include <ruby/debug.h>

#include "common/active_malloc.h"
#include "common/heap_walk.h"
#include "reading/clock.h"
#include "reading/ruby_stats.h"
#include "recorder/tags.h"
#include "boot/syscall_counter/syscall_counter.h"

typedef void read_function(struct culet_syscall_counts *calls);

static read_function *read_syscall_counts;
static culet_heap_memsize_function *slot_bytes;
static int follows_objects;

static __thread struct culet_counters recorder;    /* used by the recorder itself */
static __thread struct culet_counters pause_start; /* the counters when the current pause started */
static __thread uint64_t objects, object_bytes;
static __thread uint32_t tag;
static __thread int in_pause;

/* Runs at each allocation of an object. */
static void on_object(VALUE tracepoint, void *unused)
{
    VALUE object = rb_tracearg_object(rb_tracearg_from_tracepoint(tracepoint));

    if (in_pause) {
        culet_tags_set(object, 0);
        return;
    }
    objects++;
    object_bytes += slot_bytes != NULL ? slot_bytes(object) : 5 * sizeof(VALUE);
    culet_tags_set(object, tag);
}

int culet_counters_start(int follow_objects)
{
    CULET_OF_ANY(read_function, reader, "culet_syscall_counter_read");
    static VALUE tracepoint;

    read_syscall_counts = reader;
    slot_bytes = culet_heap_slot_size();
    culet_ruby_stats_prepare();
    if (follow_objects) {
        tracepoint = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_NEWOBJ, on_object, NULL);
        rb_gc_register_mark_object(tracepoint);
        rb_tracepoint_enable(tracepoint);
        follows_objects = 1;
    }
    return read_syscall_counts != NULL;
}

int culet_counters_follow(void)
{
    return follows_objects;
}

static struct culet_counters raw(void)
{
    struct culet_counters counters = {0, 0, objects, object_bytes, 0, 0, 0, 0};
    struct culet_syscall_counts calls = {0, 0, 0, 0};

    counters.seconds = culet_clock_seconds(CLOCK_MONOTONIC);
    counters.cpu_seconds = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    if (read_syscall_counts != NULL)
        read_syscall_counts(&calls);
    counters.mallocs = calls.mallocs;
    counters.malloc_bytes = calls.malloc_bytes;
    counters.paths = calls.paths;
    counters.failed_paths = calls.failed_paths;
    if (!follows_objects) {
        counters.objects = culet_ruby_stat_now(CULET_RUBY_OBJECTS); /* CULET_UNKNOWN, too: differences count */
        counters.object_bytes = counters.objects * 5 * sizeof(VALUE);
    }
    return counters;
}

struct culet_counters culet_counters_since(const struct culet_counters *later, const struct culet_counters *earlier)
{
    return (struct culet_counters){later->seconds - earlier->seconds, later->cpu_seconds - earlier->cpu_seconds,
                                   later->objects - earlier->objects, later->object_bytes - earlier->object_bytes,
                                   later->mallocs - earlier->mallocs, later->malloc_bytes - earlier->malloc_bytes,
                                   later->paths - earlier->paths,     later->failed_paths - earlier->failed_paths};
}

struct culet_counters culet_counters_pause(void)
{
    pause_start = raw();
    in_pause = 1;
    return culet_counters_since(&pause_start, &recorder);
}

void culet_counters_resume(void)
{
    struct culet_counters now = raw(), program = culet_counters_since(&pause_start, &recorder);

    recorder = culet_counters_since(&now, &program);
    in_pause = 0;
}

uint32_t culet_counters_tag(uint32_t number)
{
    uint32_t before = tag;

    tag = number;
    return before;
}
