/* profiler.h - starts and ends the sampling of the memory profile (sampling.h), carries it over a fork, and reads its
 * settings:
 *
 *     CULET_PROFILE=SIZE      starts at the program's start; SIZE: mean distance of two samples in bytes, or in k, m, g;
 *                             1: CULET_PROFILE_DEFAULT_BYTES; 0, or no size: off
 *
 * profile_file.h has those of the files that are written. */
#ifndef CULET_PROFILER_H
#define CULET_PROFILER_H

#include "types.h"

/* Once, outside of malloc: starts the profile if it is set. */
void culet_profiler_setup(void);

/* By the fork handlers, innermost. */
void culet_profiler_before_fork(void);
void culet_profiler_after_fork_in_parent(void);
void culet_profiler_after_fork_in_child(void);

#endif
