/*
 * trim/policy.h - when the next trim is due, and what the last ones cost: arithmetic alone, it knows neither Ruby nor
 * threads. All times are seconds of one monotonic clock, all figures of memory are bytes.
 */
#ifndef CULET_TRIM_POLICY_H
#define CULET_TRIM_POLICY_H

#include <stdint.h>

/* What whoever starts it may choose. */
struct culet_trim_settings {
  double interval_seconds; /* between a trim's end and the next one's start, at the least */
  uint64_t minimum_bytes;  /* below that a trim is not worth it */
};

/* What is remembered of the last trim; all that follows the first two members zero: there was none. */
struct culet_trim_policy {
  struct culet_trim_settings settings;
  double refault_seconds_per_byte; /* processor time that it takes here to have memory again that was given back */
  double ended;            /* when; 0: there was none */
  double seconds;          /* of processor time it took */
  uint64_t returned_bytes; /* what it gave back */
  uint64_t resident_bytes; /* what was resident then */
  unsigned unproductive;           /* how many of the last ones, in a row, gave back less than the minimum */
  unsigned ineffective;           /* how many of those before the last, in a row, gave back what was resident again at the next */
};

/* Takes down a trim: when it ended, the processor time it took, and what was resident before and after it. */
void culet_trim_policy_record(struct culet_trim_policy *policy, double ended, double seconds, uint64_t before, uint64_t after);

/* How much of what the last trim gave back is resident again, or has been replaced by as much. */
uint64_t culet_trim_policy_refaulted(const struct culet_trim_policy *policy, uint64_t resident);

/* How long after the last trim's end the next one may begin at the earliest, in seconds. */
double culet_trim_policy_interval(const struct culet_trim_policy *policy, uint64_t resident);

/* Whether the program is at rest: quiet_since: since when no collection has begun. */
int culet_trim_policy_is_idle(double idle_since, double time);

/*
 * When a trim that is wanted is due. swept: whether the sweep of the collection that it is wanted for has certainly
 * ended; quiet_since: as above. The result may lie in the past.
 */
double culet_trim_policy_due(const struct culet_trim_policy *policy, uint64_t resident, int swept, double idle_since);

/*
 * Whether the last trim was in vain: most of what it gave back is resident again, and hardly more; a program that has grown
 * far beyond has other things to give back. Then the wait for the next one is meant; else it spares those who would have to
 * wait meanwhile.
 */
int culet_trim_policy_is_ineffective(const struct culet_trim_policy *policy, uint64_t resident);

#endif
