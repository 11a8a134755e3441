#include "limit/collector.h"

#include <ruby.h>
#include <ruby/debug.h>
#include <stdatomic.h>

#include "common/release.h"
#include "limit/state.h"
#include "limit/steering.h"
#include "reading/clock.h"
#include "reading/process.h"
#include "reading/ruby_stats.h"
#include "trim/gc_watch.h"

/* By which the count is raised above zero. Each adds Ruby's limit, of 16 MB or more, so that together they make up for a
 * sweep that has freed a gigabyte. */
#define MOST_STEPS 64

static struct culet_limit_state *const state = &culet_limit_state;

/* Of Ruby threads, with the GVL; the ticker reads what is atomic. */
static struct {
    struct culet_steering steering;
    struct culet_forecast forecast;
    uint64_t steered_at; /* number of the last collection that was steered after */
    uint64_t added;      /* to Ruby's count of allocated bytes since the last collection */
    void (*request_steering)(void);
    struct culet_backoff collecting; /* forced collections */
    struct culet_backoff swept;      /* trims after collections */
    struct culet_backoff forecasts;  /* collections before the heap grows */
    _Atomic double forecast_until;   /* until then collections are not brought forward, by any thread */
} collector = {.steered_at = CULET_UNKNOWN};

static VALUE key_malloc; /* Symbol for rb_gc_stat: bytes allocated so far; 0: this Ruby has no such total */
static VALUE key_free;   /* Symbol for rb_gc_stat: free slots; 0: this collector has none, or no total of objects */
static VALUE key_limit;  /* Symbol for rb_gc_stat: bytes until Ruby collects; 0: this collector has no such limit */

static VALUE start_event; /* the TracePoint of `on_start`, enabled while the budget is not Ruby's */

/* Ends a sweep in progress, so that what it frees can be returned. */
static void finish_sweep(void)
{
    if (!culet_gc_swept() && !RTEST(rb_gc_disable()))
        rb_gc_enable();
}

static void adjust(int64_t bytes)
{
    if (bytes != 0)
        rb_gc_adjust_memory_usage((ssize_t)bytes);
}

static void add(int64_t bytes)
{
    collector.added += (uint64_t)bytes;
    adjust(bytes);
}

/* The count of allocated bytes from which on Ruby collects after the budget. */
static uint64_t wanted_count(void)
{
    uint64_t ruby = rb_gc_stat(key_limit);

    return ruby > collector.steering.budget ? ruby - collector.steering.budget : 0;
}

/* Ruby 4.1 counts below zero where more was freed than allocated, and reports zero then. */
static void raise_count(void)
{
    uint64_t wanted = wanted_count(), count = culet_ruby_stat_now(CULET_RUBY_MALLOC_INCREASE);

    if (count >= wanted)
        return;
    for (int step = 0; count == 0 && step < MOST_STEPS; step++) {
        add((int64_t)rb_gc_stat(key_limit));
        count = culet_ruby_stat_now(CULET_RUBY_MALLOC_INCREASE);
    }
    add((int64_t)(wanted - count));
}

/* During GC, when a collection starts and has set Ruby's count to zero. What was added before is taken back: it also
 * counts for the next major collection, and was no garbage. Not from a difference of totals (4.1), which forgets at the
 * end of the sweep what was subtracted until then. An incremental collection marks between allocations, so the job alone
 * would be too late. */
static void on_start(VALUE event, void *unused)
{
    uint64_t added = collector.added;

    if (!culet_limit_watched())
        return;
    collector.added = 0;
    if (key_malloc == 0)
        adjust(-(int64_t)added);
    add((int64_t)wanted_count());
    collector.request_steering();
}

/* The sweep has subtracted what it freed from the count. */
static void apply(void)
{
    VALUE enabled = rb_tracepoint_enabled_p(start_event);

    if (collector.steering.tight && !RTEST(enabled))
        rb_tracepoint_enable(start_event);
    else if (!collector.steering.tight && RTEST(enabled))
        rb_tracepoint_disable(start_event);
    if (collector.steering.tight) {
        finish_sweep();
        raise_count();
    } else {
        adjust(-(int64_t)collector.added);
        collector.added = 0;
    }
}

int culet_collector_requests(void)
{
    return atomic_load(&state->pid) != 0 && key_limit != 0;
}

/* Returns what the last collection freed, unless that would take too much of the time. Returns whether it did. */
static int trim_swept(uint64_t limit)
{
    if (!culet_backoff_due(&collector.swept, culet_clock_seconds(CLOCK_MONOTONIC), atomic_load(&state->used), limit) ||
        culet_release_found()->call == NULL)
        return 0;
    culet_limit_trim(&collector.swept, limit);
    return 1;
}

/* A collection of old objects too, with an immediate sweep. */
static void collect(uint64_t limit)
{
    double began = culet_clock_seconds(CLOCK_MONOTONIC), ended;
    uint64_t before, freed;

    if (!culet_backoff_due(&collector.collecting, began, atomic_load(&state->used), limit))
        return;
    before = culet_anonymous_bytes();
    rb_gc_start();
    if (culet_release_found()->call != NULL)
        culet_release_memory();
    freed = culet_limit_freed(before);
    ended = culet_clock_seconds(CLOCK_MONOTONIC);
    atomic_fetch_add(&state->collections, 1);
    atomic_fetch_add(&state->freed_bytes, freed);
    culet_backoff_note(&collector.collecting, ended, (ended - began) * CULET_LIMIT_COLLECTION_REST, freed,
                       culet_limit_read_used(0, 1), limit);
}

/* At a job, before Ruby's heap grows beyond what fits: a collection now leaves the slots that the program needs until
 * the next job. In the middle of a call of C no job could run, and more objects would live. */
static void collect_before_growth(uint64_t limit)
{
    uint64_t most = culet_limit_part(limit, CULET_FORECAST_MOST), free = rb_gc_stat(key_free), used, freed;
    uint64_t growth = culet_forecast_growth(&collector.forecast, culet_ruby_stat_now(CULET_RUBY_OBJECTS), free);
    double began = culet_clock_seconds(CLOCK_MONOTONIC), ended;

    if (growth == 0 || began < atomic_load(&collector.forecasts.soonest))
        return;
    used = culet_limit_read_used(0, 1);
    if (used == CULET_UNKNOWN || used + growth < most || !culet_backoff_due(&collector.forecasts, began, used, limit))
        return;
    rb_gc_start();
    ended = culet_clock_seconds(CLOCK_MONOTONIC);
    freed = rb_gc_stat(key_free);
    freed = freed > free ? (freed - free) * CULET_FORECAST_OBJECT_BYTES : 0;
    culet_backoff_note(&collector.forecasts, ended, (ended - began) * CULET_LIMIT_FORECAST_REST, freed,
                       culet_limit_read_used(0, 1), limit);
    atomic_store(&collector.forecast_until,
                 atomic_load(&collector.forecasts.futile) == 0 ? ended + (ended - began) * CULET_LIMIT_TRIM_REST : 0);
    atomic_fetch_add(&state->collections, 1);
    if (used > atomic_load(&state->used))
        atomic_fetch_add(&state->freed_bytes, used - atomic_load(&state->used));
}

/* Decides with the sweep ended. After a collection before growth the budget is not small: tables that young objects
 * have in Ruby's own heap move to malloc (up to Ruby 3.2), and would make Ruby collect at once. */
static void steer(uint64_t limit)
{
    uint64_t trims = atomic_load(&state->trims), used;
    int exceeded = trims != collector.steering.trims; /* the thread found more in use than was expected */

    if (collector.steering.tight)
        finish_sweep();
    used = culet_limit_read_used(0, 1);
    if (used == CULET_UNKNOWN)
        return;
    if (culet_steering_room(limit, used) == 0) {
        finish_sweep();
        exceeded |= trim_swept(limit); /* without a trim the memory stays what it is, however small the budget */
        if (atomic_load(&state->used) >= culet_limit_part(limit, CULET_LIMIT_CRITICAL))
            collect(limit);
    }
    culet_steering_update(&collector.steering, limit, atomic_load(&state->used), rb_gc_stat(key_limit), exceeded);
    collector.steering.trims = atomic_load(&state->trims);
    if (collector.steering.tight && collector.steering.budget < limit / 4 &&
        culet_clock_seconds(CLOCK_MONOTONIC) < atomic_load(&collector.forecast_until))
        collector.steering.budget = limit / 4;
    apply();
}

void culet_collector_steer(void)
{
    static int active; /* a collection in here calls this again */
    uint64_t limit = state->settings.limit, ruby;

    if (active || !culet_limit_watched() || key_limit == 0)
        return;
    if (collector.steering.tight && key_free != 0) {
        active = 1;
        collect_before_growth(limit);
        active = 0;
    }
    /* a collection requests it at its start and when it marks; once is enough */
    if (collector.steered_at == culet_ruby_stat_now(CULET_RUBY_COLLECTIONS))
        return;
    collector.steered_at = culet_ruby_stat_now(CULET_RUBY_COLLECTIONS);
    ruby = rb_gc_stat(key_limit);
    if (culet_steering_far(&collector.steering, limit, atomic_load(&state->used), ruby))
        return;
    active = 1;
    steer(limit);
    active = 0;
}

int culet_collector_may_push(double time, uint64_t used, uint64_t limit)
{
    if (key_limit == 0 || time < atomic_load(&collector.forecast_until))
        return 0;
    return atomic_load(&collector.collecting.futile) == 0 ||
           culet_backoff_due(&collector.collecting, time, used, limit);
}

void culet_collector_request(void)
{
    if (key_limit != 0)
        collector.request_steering();
}

void culet_collector_reset(void)
{
    collector.steered_at = CULET_UNKNOWN;
}

void culet_collector_stop(void)
{
    collector.steering = (struct culet_steering){0};
}

struct culet_collector_counts culet_collector_counts(void)
{
    return (struct culet_collector_counts){collector.steering.tightened,
                                           collector.steering.tight ? collector.steering.budget : 0};
}

void culet_collector_prepare(void (*request_steering)(void))
{
    key_limit = culet_ruby_stat_key("malloc_increase_bytes_limit");
    key_malloc = culet_ruby_stat_key("total_malloc_bytes");
    if (culet_ruby_stat_now(CULET_RUBY_MALLOC_INCREASE) == CULET_UNKNOWN ||
        culet_ruby_stat_now(CULET_RUBY_COLLECTIONS) == CULET_UNKNOWN)
        key_limit = 0;
    if (culet_ruby_stat_now(CULET_RUBY_OBJECTS) != CULET_UNKNOWN)
        key_free = culet_ruby_stat_key("heap_free_slots");
    collector.request_steering = request_steering;
    start_event = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_GC_START, on_start, NULL);
    rb_gc_register_mark_object(start_event);
}
