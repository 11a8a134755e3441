/* agent/copy.h - has a copy of this process tell which of its code never ran. */
#ifndef CULET_AGENT_COPY_H
#define CULET_AGENT_COPY_H

#include <ruby.h>

/* A copy at work. */
struct culet_copy {
  int status; /* the reading end of a pipe: the copy's pid_t, one byte when the answer is complete, end of file when it ends */
  int output; /* the file that the copy writes the answer to */
};

/*
 * Forks a copy, which takes the census (lib/culet/unused.rb) and ends. So the process itself makes no object for it, and
 * stands still for the two forks alone. Called by the main thread with the GVL.
 *
 * copy: is filled in, see agent/listener.h; what comes in the file is JSON
 * Returns NULL, or a sentence: why there is none.
 */
const char *culet_copy_start(struct culet_copy *copy);

/* What runs counts from now on, if it did not before. May raise; for rb_protect. Returns Qnil. */
VALUE culet_copy_follow_unused(VALUE unused);

#endif
