/* GC event hooks are not suitable: up to Ruby 3.2 any of them slows down every allocation (+22 % of instructions in a
 * loop that only allocates), they do not fire in other Ractors, and MMTk fires only the start event.
 *
 * Every collector marks. One object without a write barrier (RUBY_TYPED_WB_PROTECTED is not set), which each
 * collection, minor ones included, must therefore mark, reports the collection in its mark function. A collection
 * starts when the previous sweep has ended, so its start also reports the end of that sweep. */
#include "trim/gc_watch.h"

#include <ruby.h>
#include <stdatomic.h>

#include "reading/ruby_stats.h"
#include "common/values.h"
#include "common/vm_lock.h"

#define WATCHERS 5

static culet_gc_watcher *watchers[WATCHERS];
static _Atomic int watcher_count;
static VALUE key_state; /* Symbol for rb_gc_latest_gc_info; 0: not supported */
static VALUE state_none;
static _Atomic uint64_t last_collection; /* number of the last collection seen */
static uint64_t majors;                  /* CULET_UNKNOWN: the collector does not count them */

/* The number of the current collection, or outside of one, of the last; CULET_UNKNOWN: collections are not counted. Its
 * lowest bit is set in the main Ractor, since each Ractor of 4.1 has a count of its own. Collectors that mark in Ruby
 * threads count a collection when it starts. MMTk marks in its own threads and counts it when Ruby's threads resume, so
 * the count is still one too low. */
static uint64_t collection_number(void)
{
    bool collector_thread = !ruby_native_thread_p();
    uint64_t count = culet_ruby_stat_now(CULET_RUBY_COLLECTIONS);

    if (count == CULET_UNKNOWN)
        return count;
    return 2 * (count + collector_thread) + (collector_thread || culet_in_main_ractor());
}

/* ObjectSpace.dump_all and others also call mark functions; the number is then unchanged. Numbers may be skipped. The
 * exchange is atomic, because a parallel collector may call this in two threads. */
static void mark(void *unused)
{
    uint64_t collection = collection_number(), current;
    int major;

    if (atomic_exchange(&last_collection, collection) == collection && collection != CULET_UNKNOWN)
        return;
    current = culet_ruby_stat_now(CULET_RUBY_MAJORS);
    major = current != majors || current == CULET_UNKNOWN;
    majors = current;
    for (int i = 0; i < watcher_count; i++)
        watchers[i](major);
}

static const rb_data_type_t type = {.wrap_struct_name = "culet/gc_watch", .function = {.dmark = mark}};

void culet_gc_prepare(void)
{
    key_state = culet_ruby_info_key("state");
    state_none = culet_symbol("none");
}

void culet_gc_watch(culet_gc_watcher *function)
{
    if (watcher_count == WATCHERS)
        rb_raise(rb_eRuntimeError, "too many parts of culet watch the collections");
    if (watcher_count > 0) {
        watchers[watcher_count] = function;
        watcher_count++;
        return;
    }
    atomic_store(&last_collection, collection_number());
    majors = culet_ruby_stat_now(CULET_RUBY_MAJORS);
    watchers[0] = function;
    watcher_count = 1;
    /* not NULL, or Ruby does not mark it */
    rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &type, &majors));
}

int culet_gc_swept(void)
{
    return key_state != 0 && rb_gc_latest_gc_info(key_state) == state_none;
}
