/*
 * The least that could be done, to compare culet/auto with: glibc's malloc_trim(0) in a Ruby thread at the end of the
 * sweep of each major collection. No interval, no thread, no counting.
 */
#include <ruby.h>

#include <malloc.h>
#include <ruby/debug.h>

static VALUE key;
static size_t majors;

static void job(void *unused)
{
    malloc_trim(0);
}

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static rb_postponed_job_handle_t handle;
#endif

static void at_sweep_end(VALUE tracepoint, void *unused)
{
    size_t now = rb_gc_stat(key);

    if (now == majors)
        return;
    majors = now;
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rb_postponed_job_trigger(handle);
#else
    rb_postponed_job_register_one(0, job, NULL);
#endif
}

void Init_spike(void)
{
    VALUE tracepoint = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_GC_END_SWEEP, at_sweep_end, NULL);

    key = ID2SYM(rb_intern("major_gc_count"));
    majors = rb_gc_stat(key);
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    handle = rb_postponed_job_preregister(0, job, NULL);
#endif
    rb_gc_register_mark_object(tracepoint);
    rb_tracepoint_enable(tracepoint);
}
