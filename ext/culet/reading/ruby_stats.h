/* reading/ruby_stats.h - counts of Ruby's heap: noted by Ruby threads for readers in native threads, and by name. */
#pragma once

#include <ruby.h>
#include <stdint.h>

#include "reading/kernel_file.h"

/* Members of GC.stat; which of them there are depends on Ruby's version and collector. */
enum culet_ruby_stat {
    CULET_RUBY_COLLECTIONS,
    CULET_RUBY_MINORS,
    CULET_RUBY_MAJORS,
    CULET_RUBY_MILLISECONDS, /* of all collections */
    CULET_RUBY_LIVE_SLOTS,
    CULET_RUBY_SLOTS,
    CULET_RUBY_PAGES,
    CULET_RUBY_MALLOC_INCREASE,
    CULET_RUBY_OLDMALLOC_INCREASE,
    CULET_RUBY_OBJECTS, /* allocated so far */
    CULET_RUBY_STATS
};

/* Finds out which of them Ruby has, and notes them. Further calls only note. With the GVL, not during GC. May raise. */
void culet_ruby_stats_prepare(void);

/* Notes all of them. In a Ruby thread, or during GC. Allocates nothing. */
void culet_ruby_stats_note(void);

/* Notes them if the last note is older than that, in nanoseconds. In a Ruby thread, or during GC. */
void culet_ruby_stats_note_after(uint64_t nanoseconds);

/* When they were noted, in nanoseconds of CLOCK_REALTIME; 0: never. In any thread, as the next function. */
uint64_t culet_ruby_stats_time(void);

/* As noted; CULET_UNKNOWN if Ruby lacks it. */
uint64_t culet_ruby_stat_noted(enum culet_ruby_stat stat);

/* As it is now. In a Ruby thread, or during GC. */
uint64_t culet_ruby_stat_now(enum culet_ruby_stat stat);

/* ---- other members ---- */

/* The Symbol of a member of GC.stat; 0: this Ruby's collector lacks it. With the GVL, not during GC. */
VALUE culet_ruby_stat_key(const char *name);

/* The Symbol of a member of GC.latest_gc_info; 0: this Ruby's collector lacks it. With the GVL, not during GC. */
VALUE culet_ruby_info_key(const char *name);
