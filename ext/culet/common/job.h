/* common/job.h - functions that a Ruby thread runs soon, at the next point where it checks for interrupts. */
#pragma once

#include <ruby.h>
#include <ruby/debug.h>
#include <stdbool.h>

struct culet_job {
    void (*function)(void *); /* gets NULL; Ruby drops what it raises */
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rb_postponed_job_handle_t handle;
#endif
};

/* Before the others, in a Ruby thread. False: Ruby has no room for another one. */
bool culet_job_prepare(struct culet_job *job);

/* Has the function run soon, once for several calls. In any thread, in signal handlers, during GC. Up to Ruby 3.2 the
 * call is lost if Ruby's queue is full. */
void culet_job_trigger(const struct culet_job *job);
