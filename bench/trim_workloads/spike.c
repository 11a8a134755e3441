/*
 * The least that trims at the right moment, to hold culet/auto against: glibc's malloc_trim(0), at once and in Ruby's
 * own thread, when the sweep of a major collection has ended; no minimum, no interval.
 */
#include <malloc.h>
#include <ruby.h>
#include <ruby/debug.h>

static VALUE major_gc_count;
static size_t seen;
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static rb_postponed_job_handle_t handle;
#endif

static void
trim(void *unused)
{
  (void)unused;
  malloc_trim(0);
}

/* Inside a collection, where nothing may be allocated: the trim is a job for when it has ended. */
static void
swept(VALUE event, void *unused)
{
  size_t majors = rb_gc_stat(major_gc_count);

  (void)event;
  (void)unused;
  if (majors == seen) return;
  seen = majors;
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
  rb_postponed_job_trigger(handle);
#else
  rb_postponed_job_register_one(0, trim, NULL);
#endif
}

void
Init_spike(void)
{
  major_gc_count = ID2SYM(rb_intern("major_gc_count"));
  seen = rb_gc_stat(major_gc_count); /* its first use makes symbols, which the hook must not */
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
  handle = rb_postponed_job_preregister(0, trim, NULL);
#endif
  rb_tracepoint_enable(rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_GC_END_SWEEP, swept, NULL));
}
