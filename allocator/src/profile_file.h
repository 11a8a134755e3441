/* profile_file.h - the files of the memory profile of a program that is not Ruby: that of CULET_PROFILE_OUT at exit
 * (sampler/core/host.h), and besides
 *
 *     CULET_PROFILE_EVERY=N   writes FILE.last every N seconds, and removes it at exit: what is known of a program that is
 *                             killed
 *
 * The library installs no signal handler. A thread writes FILE.last; the first sample starts it, in a forked child anew,
 * but none that is taken inside the dynamic loader (loader.h). It blocks all signals. A fork waits until it has written. */
#pragma once

#include "types.h"

/* Once, outside of malloc, unless the library is dormant. */
void culet_profile_file_setup(void);

/* After a sample, outside of all locks. */
void culet_profile_file_sampled(void);

/* At exit. */
void culet_profile_file_end(void);

/* Whether the calling thread writes a file. */
bool culet_profile_file_inside(void);

/* By the fork handlers, outermost. */
void culet_profile_file_before_fork(void);
void culet_profile_file_after_fork_in_parent(void);
void culet_profile_file_after_fork_in_child(void);
