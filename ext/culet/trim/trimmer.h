/*
 * trim/trimmer.h - carries out trims and counts what they do: in a native thread that no Ruby thread waits for, or at the call.
 *
 * Knows no Ruby: whoever sees collections tells of them by culet_trimmer_collection.
 */
#ifndef CULET_TRIMMER_H
#define CULET_TRIMMER_H

#include <stdint.h>

#include "trim/policy.h"

/* Since the process began, or since it was forked. */
struct culet_trimmer_stats {
  uint64_t requested;        /* major collections that were seen */
  uint64_t trims;            /* carried out */
  uint64_t skipped;          /* due, but the allocator said that there is less than the minimum to give back */
  uint64_t returned_bytes;   /* resident before, less resident after, added up */
  uint64_t refaulted_bytes;  /* of those, resident again when the next trim came, or now */
  double seconds;            /* all trims together */
  double longest_seconds;    /* the longest of them */
  double interval_seconds;   /* that the next one keeps from the last, now */
  int has_thread;            /* whether the native thread runs */
};

/* Prepares for fork, once. Returns 0 or an error's number. */
int culet_trimmer_prepare(const struct culet_trim_settings *settings);

/*
 * Tells of a collection whose marking is under way, hence of the end of all sweeps before. May be called inside a GC, by
 * any thread, though not by several at once: it stores words and wakes the thread, nothing else. Returns whether a trim
 * is wanted.
 */
int culet_trimmer_collection(int major);

/* Tells that the sweep of the last collection has ended. As above, but not inside a GC. */
void culet_trimmer_swept(void);

/* Starts the thread, if it does not run. Returns 0 or an error's number. */
int culet_trimmer_start(void);

/* Whether this process has its thread. Cheap. */
int culet_trimmer_runs(void);

/*
 * Carries out a trim now, in the calling thread, whether it is due or not, after a running one. Returns how many bytes
 * fewer are resident afterwards; 0 also where /proc does not tell. swept: the caller knows that the last collection's sweep
 * has ended. Not inside a GC.
 */
uint64_t culet_trimmer_trim(int swept);

/*
 * Carries out a trim now, in the calling thread, if one is wanted and due, or swept. swept: as above. Returns whether it
 * was. Not inside a GC.
 */
int culet_trimmer_trim_if_due(int swept);

/*
 * Returns whether a trim is wanted whose only reason to wait is that somebody might have to wait for it: a good moment
 * to carry it out is when nobody does. Cheap where none is wanted. swept: as above.
 */
int culet_trimmer_pending(int swept);

/* What was counted. */
struct culet_trimmer_stats culet_trimmer_stats(void);

/* Ends the thread and waits for its end, at most for the trim that it is at. It is not started any more in this process. */
void culet_trimmer_end(void);

#endif
