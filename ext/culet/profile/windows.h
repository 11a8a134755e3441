/* profile/windows.h - the thread that decides when a window of object sampling is open.
 *
 * A window opens and closes in a postponed job, at a point where a Ruby thread checks for interrupts. C code can allocate
 * for milliseconds between two such points, and a process can wait for input for minutes. Both ends of a window are
 * scheduled by the clock, the second one independently of when the job ran for the first; each then waits for the next
 * such point. So the allocations between two points are in a window with the same probability, whatever their duration:
 * the share of time that windows cover. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Has the job run soon. Called in any thread. */
typedef void culet_windows_trigger(void);

/* Once, in a Ruby thread. Returns 0 or an errno. */
int culet_windows_prepare(culet_windows_trigger *trigger);

/* Starts the thread if it does not run. Returns 0 or an errno. */
int culet_windows_start(void);

/* Ends the thread. */
void culet_windows_stop(void);

/* Called by the job, each time it runs. Returns whether a window is to be open now. */
bool culet_windows_wanted(void);

/* Called by the hook for each object. Closes the window in time where the thread is late. */
void culet_windows_count(void);

/* Processor time that sampling took. Windows become rarer if they are expensive. */
void culet_windows_cost(uint64_t nanoseconds);

/* A span of sampling in a job or in the hook: its time is not part of a window, its CPU time is a cost. On a busy
 * machine the one may be many times the other. */
struct culet_windows_span {
    uint64_t time, thread_time; /* in nanoseconds */
};
struct culet_windows_span culet_windows_begin(void);
void culet_windows_end(struct culet_windows_span began);

/* The share of time that windows cover. */
double culet_windows_share(void);

/* A random number in (0, 1), and a first state for it. */
double culet_windows_random(uint64_t *state);
uint64_t culet_windows_seed(void);
