/* trim/policy.h - decides when the next trim is due. Arithmetic only: no Ruby, no threads, no clock. Times are seconds
 * of one monotonic clock, amounts of memory are bytes.
 *
 * All constants of the trims after collections. An operator sets the first two with CULET_TRIM, which
 * lib/culet/runtime/trim/settings.rb reads; the others follow from measurements, see DESIGN.md.
 *
 *   constant                  value     CULET_TRIM  reason
 *   interval_seconds          0.25 s    interval=   shortest pause between two trims; 0 in Ruby threads, where a postponed
 *                                                   trim may never run
 *   minimum_bytes             1 MiB     minimum=    a smaller trim is not worth its system calls
 *   COST_SHARE                100       -           trims and the page faults they cause may take 1 % of the time
 *   MAX_INTERVAL_SECONDS      60 s      -           upper bound of every back-off
 *   IDLE_SECONDS              0.3 s     -           a program without a collection for this time is idle
 *   IDLE_COST_SHARE           10        -           an idle program may spend 10 %: freed memory is not needed at once
 *   IDLE_MAX_INTERVAL_SECONDS 0.5 s     -           so that memory is returned within a second of the last collection
 *   MAX_DOUBLINGS             8         -           0.25 s doubled eight times exceeds MAX_INTERVAL_SECONDS */
#pragma once

#include <stdint.h>

#define CULET_TRIM_INTERVAL_SECONDS 0.25
#define CULET_TRIM_COST_SHARE 100
#define CULET_TRIM_MAX_INTERVAL_SECONDS 60.0
#define CULET_TRIM_IDLE_SECONDS 0.3
#define CULET_TRIM_IDLE_COST_SHARE 10
#define CULET_TRIM_IDLE_MAX_INTERVAL_SECONDS 0.5
#define CULET_TRIM_MAX_DOUBLINGS 8

struct culet_trim_settings {
    double interval_seconds; /* shortest time between the end of a trim and the start of the next */
    uint64_t minimum_bytes;  /* a trim that returns less is unproductive */
};

/* The last trim. ended == 0: none. */
struct culet_trim_policy {
    struct culet_trim_settings settings;
    double refault_seconds_per_byte; /* processor time to get returned memory back on this machine */
    double ended;
    double seconds; /* processor time of the trim */
    uint64_t returned_bytes;
    uint64_t resident_bytes; /* after the trim */
    unsigned unproductive;   /* consecutive trims that returned less than the minimum */
    unsigned ineffective;    /* consecutive trims before the last whose memory was resident again at the next trim */
};

/* Records a trim: the time of its end, its CPU time, the resident bytes before and after it. */
void culet_trim_policy_record(struct culet_trim_policy *policy, double ended, double seconds, uint64_t before,
                              uint64_t after);

/* The bytes returned by the last trim that are resident again, or were replaced by others. */
uint64_t culet_trim_policy_refaulted(const struct culet_trim_policy *policy, uint64_t resident);

/* Seconds from the end of the last trim to the earliest start of the next one, in a busy program. */
double culet_trim_policy_interval(const struct culet_trim_policy *policy, uint64_t resident);

/* Whether the program is idle. idle_since: start of the last collection. */
int culet_trim_policy_is_idle(double idle_since, double time);

/* The time at which a requested trim is due; possibly past. swept: whether the sweep of the collection that requested
 * the trim has ended for certain. */
double culet_trim_policy_due(const struct culet_trim_policy *policy, uint64_t resident, int swept, double idle_since);

/* Whether the last trim was ineffective: most of what it returned is resident again, and the program has not grown much
 * beyond that. */
int culet_trim_policy_is_ineffective(const struct culet_trim_policy *policy, uint64_t resident);
