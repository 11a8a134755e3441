/* limit/collector.h - garbage collections near a memory limit: after each of Ruby's it decides how much may be allocated
 * until the next one, and forces one where the memory would not suffice until then. */
#pragma once

#include <stdint.h>

/* Collections brought forward; bytes until the next, 0: Ruby's own budget. */
struct culet_collector_counts {
    uint64_t tightened, budget;
};
struct culet_collector_counts culet_collector_counts(void);

/* During GC: whether culet_collector_steer is to be called after it. */
int culet_collector_requests(void);

/* In a Ruby thread, not during GC: after each collection for which the function above said so, and after a start. */
void culet_collector_steer(void);

/* Has culet_collector_steer called. Any thread. */
void culet_collector_request(void);

/* Whether the ticker may make the next malloc collect, at a time in seconds of CLOCK_MONOTONIC. */
int culet_collector_may_push(double time, uint64_t used, uint64_t limit);

/* For new settings; and when the limit is not watched any more. With the GVL. */
void culet_collector_reset(void);
void culet_collector_stop(void);

/* Finds out what Ruby reports. Once, before all others, not during GC. request_steering: called during GC; has
 * culet_collector_steer called after it. */
void culet_collector_prepare(void (*request_steering)(void));
