/* agent/copy.h - a forked copy of the process that reports which code never ran. */
#ifndef CULET_AGENT_COPY_H
#define CULET_AGENT_COPY_H

#include <ruby.h>

/* A running copy. */
struct culet_copy {
    /* reading end of a pipe: the copy's pid_t, one byte when the answer is complete, end of file when the copy ends */
    int status;
    int output; /* file that receives the answer, JSON */
};

/*
 * Forks a copy that calls `document` of the reporter (agent/unused_reporter.h) and ends. The process itself allocates no
 * objects for the answer and stops for the two forks only. Called by the main thread with the GVL, inside
 * culet_listener_no_child.
 *
 * Returns NULL and sets `copy`, or returns an error message.
 */
const char *culet_copy_start(struct culet_copy *copy);

/* Calls `follow` of the reporter. May raise; for rb_protect. Returns Qnil. */
VALUE culet_copy_follow_unused(VALUE unused);

#endif
