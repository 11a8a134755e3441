/* trim/trimmer.h - runs trims, in a native thread or in the calling thread, and counts them. Knows no Ruby. */
#pragma once

#include <stdint.h>

#include "trim/policy.h"

/* Counts since the process started or was forked. */
struct culet_trimmer_stats {
    uint64_t requested;       /* major collections */
    uint64_t trims;           /* carried out */
    uint64_t skipped;         /* due, but the allocator had less than the minimum to return */
    uint64_t returned_bytes;  /* sum of resident bytes before minus after */
    uint64_t refaulted_bytes; /* of these, resident again at the next trim, or now */
    double seconds;           /* all trims together */
    double longest_seconds;   /* the longest trim */
    double interval_seconds;  /* shortest time from the last trim to the next, at present */
    int has_thread;           /* whether the native thread runs */
};

/* Applies the settings and, once, registers the fork handler. Returns 0 or an errno. */
int culet_trimmer_prepare(const struct culet_trim_settings *settings);

/* Reports a collection that is marking, and with it the end of all earlier sweeps. May be called during GC, in any
 * thread, but not concurrently: it stores counters and wakes the thread. Returns whether a trim is pending. */
int culet_trimmer_collection(int major);

/* Reports that the sweep of the last collection has ended. Not during GC. */
void culet_trimmer_swept(void);

/* Starts the thread unless it runs. Returns 0 or an errno. */
int culet_trimmer_start(void);

/* Whether the thread runs. */
int culet_trimmer_runs(void);

/* Trims now, in the calling thread, after a running trim. Returns the decrease of the resident memory in bytes; 0 if
 * /proc is not readable. swept: whether the last collection's sweep has ended. Not during GC. */
uint64_t culet_trimmer_trim(int swept);

/* Trims now, in the calling thread, if a trim is pending and due, or if swept. Returns whether it trimmed. Not during
 * GC. */
int culet_trimmer_trim_if_due(int swept);

/* Whether a pending trim could run now, while no request is served. */
int culet_trimmer_pending(int swept);

/* The number of trims so far. returned: the bytes that they returned. Reads no file. */
uint64_t culet_trimmer_totals(uint64_t *returned);

/* The statistics. */
struct culet_trimmer_stats culet_trimmer_stats(void);

/* Ends the thread, after the running trim if there is one; it does not start again in this process. */
void culet_trimmer_end(void);
