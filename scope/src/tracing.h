/* tracing.h - stops the threads of a target and lets them go; target.c decides when.
 *
 * Threads are stopped with PTRACE_SEIZE and PTRACE_INTERRUPT and let go with PTRACE_DETACH: no signal is sent, nothing in
 * the process changes, and the kernel lets the threads run when this program dies. Each thread is waited for by its
 * number: a wait for any of them takes the kernel a walk over all of them. */
#ifndef CULET_TRACING_H
#define CULET_TRACING_H

#include "target.h"

/* Seizes the threads that are not seized yet; none is stopped by that. Threads that end or execute another program
 * meanwhile are left out. Ends the program with a sentence where another process traces them. Returns false where the
 * kernel does not allow tracing at all (a sandbox). */
bool culet_tracing_seize(struct culet_target *target);

enum culet_stop { CULET_ALL_STOP, CULET_SOME_STOP, CULET_NONE_MAY_STOP };

/* Stops all threads, also those that are made meanwhile. Some are left running where one has not stopped after `limit_ns`
 * nanoseconds: they stop when they are given a processor, and are let go at once if culet_tracing_release was called. Ends
 * the program with a sentence where one does not stop at all. */
enum culet_stop culet_tracing_stop(struct culet_target *target, uint64_t limit_ns);

/* Stops `count` of the seized threads, if there are as many, and lets them go; those that have not stopped after
 * `limit_ns` nanoseconds are left for culet_tracing_stop. */
void culet_tracing_try(struct culet_target *target, size_t count, uint64_t limit_ns);

/* Lets all threads go. */
void culet_tracing_release(struct culet_target *target);

/* Lets one stopped thread go on for `ns` nanoseconds and stops it again. Returns false when it could not go on. */
bool culet_tracing_nudge(struct culet_target *target, struct culet_thread *thread, long ns);

#endif
