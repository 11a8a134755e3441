/* limit/steering.h - how much Ruby may allocate until the next collection, and how much it will. Arithmetic only.
 *
 * Ruby collects after `ruby` bytes of malloc: 16 MiB at first, up to 32 MiB later, whatever the limit of the process.
 * Right after a collection its garbage is not swept yet, so what is in use is the peak of a cycle. If the next cycle
 * would exceed the target, culet/limit raises Ruby's count of allocated bytes, so that the collection comes after
 * `budget` bytes. */
#pragma once

#include <stdint.h>

/* The peak of a cycle, in percent of the limit. */
#define CULET_STEERING_TARGET 78
/* The budget does not grow closer to the target than this part of the limit: fragmentation adds to the peak. */
#define CULET_STEERING_MARGIN 25

/* The least budget: a collection for less would cost more than it saves. In a larger limit a part of that. */
#define CULET_STEERING_LEAST_BYTES ((uint64_t)512 << 10)
#define CULET_STEERING_LEAST_PART 32

/* More than Ruby's limit unless its environment sets one; the oldest generation's begins at the same value. */
#define CULET_STEERING_PUSH_BYTES ((long)32 << 20)
/* The least time between two pushes: a collection takes 1 to 100 ms. */
#define CULET_STEERING_PUSH_SECONDS 0.02

struct culet_steering {
    int tight;
    uint64_t budget;    /* bytes of malloc until the next collection, while tight */
    uint64_t tightened; /* collections brought forward */
    uint64_t trims;     /* trims at the last decision */
};

/* Whether a cycle of Ruby's own length fits twice, by what was in use at the last reading. */
int culet_steering_far(const struct culet_steering *steering, uint64_t limit, uint64_t used, uint64_t ruby);

/* How much less is in use than the target. */
uint64_t culet_steering_room(uint64_t limit, uint64_t used);

/* Decides anew. used: after the sweep; what is free and resident counts, because the next cycle uses it first. exceeded:
 * the last cycle had a higher peak than the target. */
void culet_steering_update(struct culet_steering *steering, uint64_t limit, uint64_t used, uint64_t ruby, int exceeded);

/* By how much Ruby's heap will grow until the next point where a Ruby thread runs a job.
 *
 * Ruby's heap grows between two collections when its free slots are used up, by up to 80 % at once, and does not
 * shrink. Small objects need no malloc, so no count of allocated bytes tells. Arithmetic only. */

/* A slot has 40 bytes or more; the table of a Hash, and the arrays of larger objects, come on top. */
#define CULET_FORECAST_OBJECT_BYTES 64
/* With what is expected, no more than this part of the limit may be in use, in percent. */
#define CULET_FORECAST_MOST 96

struct culet_forecast {
    uint64_t allocated; /* objects since the start of Ruby, at the last job; 0: there was none */
    uint64_t most;      /* objects allocated between two jobs; decays by an eighth */
};

/* The bytes that the heap lacks until the next job. allocated: since the start of Ruby; free: slots. */
uint64_t culet_forecast_growth(struct culet_forecast *forecast, uint64_t allocated, uint64_t free);
