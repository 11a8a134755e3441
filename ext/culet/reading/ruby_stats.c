#include "reading/ruby_stats.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "common/values.h"
#include "reading/clock.h"

static const char *const names[CULET_RUBY_STATS] = {
    "count",
    "minor_gc_count",
    "major_gc_count",
    "time",
    "heap_live_slots",
    "heap_available_slots",
    "heap_allocated_pages",
    "malloc_increase_bytes",
    "oldmalloc_increase_bytes",
    "total_allocated_objects",
};

static VALUE keys[CULET_RUBY_STATS]; /* Symbols; 0: unknown to this Ruby */
static _Atomic uint64_t noted[CULET_RUBY_STATS], noted_at;

static VALUE read_stat(VALUE key)
{
    return SIZET2NUM(rb_gc_stat(key));
}

static VALUE read_info(VALUE key)
{
    return rb_gc_latest_gc_info(key);
}

static VALUE supported_key(VALUE (*read)(VALUE), const char *name)
{
    VALUE key = culet_symbol(name), answer = culet_try(read, key); /* ArgumentError: unknown key */

    return answer == Qundef || NIL_P(answer) ? 0 : key;
}

VALUE culet_ruby_stat_key(const char *name)
{
    return supported_key(read_stat, name);
}

VALUE culet_ruby_info_key(const char *name)
{
    return supported_key(read_info, name);
}

void culet_ruby_stats_prepare(void)
{
    static bool prepared;

    for (int i = 0; i < CULET_RUBY_STATS && !prepared; i++)
        keys[i] = culet_ruby_stat_key(names[i]);
    prepared = true;
    culet_ruby_stats_note();
}

uint64_t culet_ruby_stat_now(enum culet_ruby_stat stat)
{
    return keys[stat] != 0 ? rb_gc_stat(keys[stat]) : CULET_UNKNOWN;
}

void culet_ruby_stats_note(void)
{
    for (int i = 0; i < CULET_RUBY_STATS; i++)
        atomic_store_explicit(&noted[i], culet_ruby_stat_now((enum culet_ruby_stat)i), memory_order_relaxed);
    atomic_store_explicit(&noted_at, culet_clock(CLOCK_REALTIME), memory_order_relaxed);
}

void culet_ruby_stats_note_after(uint64_t nanoseconds)
{
    if (culet_clock(CLOCK_REALTIME) - culet_ruby_stats_time() > nanoseconds)
        culet_ruby_stats_note();
}

uint64_t culet_ruby_stats_time(void)
{
    return atomic_load_explicit(&noted_at, memory_order_relaxed);
}

uint64_t culet_ruby_stat_noted(enum culet_ruby_stat stat)
{
    return keys[stat] != 0 ? atomic_load_explicit(&noted[stat], memory_order_relaxed) : CULET_UNKNOWN;
}
