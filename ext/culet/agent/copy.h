/* agent/copy.h - a forked copy of the process that makes an answer. */
#pragma once

#include <ruby.h>

/* The task of a copy. */
struct culet_copy_task {
    const char *name;     /* of the copy's process */
    double limit_seconds; /* of CPU time */
    int runs_ruby;        /* Ruby code may run in the copy; then other threads' stacks keep no objects there */
    int is_large;         /* the answer is written to the disk where that is possible, not to memory */
    /* In the copy: writes the answer to a descriptor. pids: the process and its parent; fork_seconds: how long the fork
     * took. Returns NULL, or a sentence on why there is no answer. */
    const char *(*make)(const struct culet_copy_task *task, const long *pids, double fork_seconds, int output);
    const void *request;
};

/* The status that a copy writes to its pipe, after its pid_t. */
enum culet_copy_status { CULET_COPY_ANSWER = 1, CULET_COPY_ERROR };

/* A running copy. */
struct culet_copy {
    /* reading end of a pipe: the copy's pid_t, a culet_copy_status as a byte, end of file when the copy ends */
    int status;
    int output; /* file that receives the answer, or the error's sentence */
};

/* No copy. */
#define CULET_NO_COPY ((struct culet_copy){-1, -1})

/* Closes the descriptors of a copy, which may be none. */
void culet_copy_close(struct culet_copy *copy);

/* Forks a copy that does the task and ends. The process itself allocates no objects for the answer and stops for the
 * fork only. Called by the main thread with the GVL, inside culet_listener_no_child.
 *
 * Returns NULL and sets `copy`, or returns an error message. */
const char *culet_copy_start(struct culet_copy *copy, const struct culet_copy_task *task);
