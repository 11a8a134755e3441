/*
 * limit/watch.h - watches a memory limit, and keeps the program below it where that takes milliseconds.
 *
 * A native thread reads how much is in use. Above the alarm level it returns free memory and wakes the Ruby thread of
 * culet/limit, which runs the slower steps. Above the critical level it makes Ruby collect garbage at its next malloc.
 * After each collection `culet_watch_steer` decides how much may be allocated until the next one.
 *
 *   used < alarm: nothing is done, unless the next collection would come too late
 *   alarm <= used < critical: trims
 *   critical <= used: collections
 */
#ifndef CULET_LIMIT_WATCH_H
#define CULET_LIMIT_WATCH_H

#include <stdint.h>

#include "limit/usage.h"

#define CULET_WATCH_EVENTS 4 /* descriptors of notifications */

/* Shares of the limit, in percent. Below 85 % a program is not to lose throughput. */
#define CULET_WATCH_ALARM 85
#define CULET_WATCH_CRITICAL 93

/* From here on the usage is read for each question. */
#define CULET_WATCH_NEAR 75

/*
 * A trim may take a tenth of the time, a forced collection a fifth, so that a program that cannot be kept below its
 * limit still makes progress.
 */
#define CULET_WATCH_TRIM_SHARE 10
#define CULET_WATCH_COLLECTION_SHARE 5
/* Collections before the heap grows may take a third: growth cannot be undone. */
#define CULET_WATCH_FORECAST_SHARE 2

/*
 * The interval between two readings: the time in which a program that allocates 1 GiB a second uses up the headroom, so
 * that a program far from its limit is read twice a second.
 */
#define CULET_WATCH_BYTES_PER_SECOND ((double)(1 << 30))
#define CULET_WATCH_SHORTEST_SECONDS 0.004
#define CULET_WATCH_LONGEST_SECONDS 0.5

struct culet_watch_settings {
    uint64_t limit;
    struct culet_usage usage;
    int wakeup_fd;                  /* an eventfd that wakes the Ruby thread */
    int events[CULET_WATCH_EVENTS]; /* -1: none; readable or in state POLLPRI when memory is short */
};

/* All of them since the start. */
struct culet_watch_counts {
    uint64_t used;                     /* at the last reading */
    uint64_t trims, trimmed_bytes;     /* by the thread, and after collections */
    uint64_t collections, freed_bytes; /* forced ones */
    uint64_t tightened, budget;        /* collections brought forward; bytes until the next, 0: Ruby's own */
    uint64_t readings;
};

/* Starts the thread, or gives it new settings. Returns 0 or an errno. With the GVL, not during GC. */
int culet_watch_start(const struct culet_watch_settings *settings);

/* Ends the thread and closes nothing. */
void culet_watch_stop(void);

struct culet_watch_counts culet_watch_counts(void);

/* Whether this process watches a limit. Any thread. */
int culet_watch_runs(void);

/*
 * Whether `bytes` or more are in use. Reads the usage only if the last reading was near the limit, and then at once: the
 * thread may not have run for a while on a busy machine. Any thread.
 */
int culet_watch_full(uint64_t bytes);

/* The bytes in use at this moment; UINT64_MAX: unknown, or this process watches no limit. Any thread. */
uint64_t culet_watch_used(void);

/* The workers that the limit of this process is for too, as culet_cluster_list. */
int culet_watch_list(const pid_t *workers, unsigned count, unsigned forks);

/* Before and after each fork, as culet_cluster_fork; and the number of these calls. */
void culet_watch_fork(void);
unsigned culet_watch_forks(void);

/* During GC: whether culet_watch_steer is to be called after it. */
int culet_watch_collection(void);

/* In a Ruby thread, not during GC: after each collection for which the function above said so, and after a start. */
void culet_watch_steer(void);

/*
 * Finds out what Ruby reports. Once, before all others, not during GC. request_steering: called during GC; has
 * culet_watch_steer called after it.
 */
void culet_watch_prepare(void (*request_steering)(void));

#endif
