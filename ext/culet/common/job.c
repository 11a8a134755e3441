#include "common/job.h"

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER

bool culet_job_prepare(struct culet_job *job)
{
    job->handle = rb_postponed_job_preregister(0, job->function, NULL);
    return job->handle != POSTPONED_JOB_HANDLE_INVALID;
}

void culet_job_trigger(const struct culet_job *job)
{
    rb_postponed_job_trigger(job->handle);
}

#else

#define PLACES 64 /* more than the places in Ruby's queue that are used at once */

static void nothing(void *unused)
{
}

/* Ruby's queue reserves a place before it writes the job there. A Ruby thread that takes a job meanwhile gets what the
 * place had before. Fills the places, because what none has used is NULL. */
bool culet_job_prepare(struct culet_job *job)
{
    static bool filled;

    for (int i = 0; i < PLACES && !filled; i++)
        (void)rb_postponed_job_register(0, nothing, NULL);
    filled = true;
    return true;
}

void culet_job_trigger(const struct culet_job *job)
{
    (void)rb_postponed_job_register_one(0, job->function, NULL);
}

#endif
