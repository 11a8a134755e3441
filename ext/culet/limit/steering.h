/* limit/steering.h - decides how much Ruby may allocate until the next collection, and predicts its heap. Arithmetic
 * only.
 *
 * Ruby collects after `ruby` bytes of malloc: 16 MiB at first, up to 32 MiB later, whatever the limit of the process.
 * Right after a collection its garbage is not swept yet, so the memory in use is the peak of a cycle. If the next cycle
 * would exceed the target, culet/limit raises Ruby's count of allocated bytes, so that the collection comes after
 * `budget` bytes. */
#pragma once

#include <stdint.h>

/* The peak of a cycle, in percent of the limit. */
#define CULET_STEERING_TARGET 78
/* The budget grows only if the peak stays 1/MARGIN of the limit below the target: fragmentation adds to the peak. */
#define CULET_STEERING_MARGIN 25

/* The minimum budget, below which a collection costs more than it saves: bytes, or a part of a larger limit. */
#define CULET_STEERING_LEAST_BYTES ((uint64_t)512 << 10)
#define CULET_STEERING_LEAST_PART 32

/* More than the default of Ruby's malloc limit, and of the limit of the old generation. */
#define CULET_STEERING_PUSH_BYTES ((long)32 << 20)
/* Minimum time between two pushes: a collection takes 1 to 100 ms. */
#define CULET_STEERING_PUSH_SECONDS 0.02

struct culet_steering {
    int tight;
    uint64_t budget;    /* bytes of malloc until the next collection, while tight */
    uint64_t tightened; /* collections brought forward */
    uint64_t trims;     /* trims at the last decision */
};

/* Whether two cycles of Ruby's own length fit, by the use at the last reading. */
int culet_steering_far(const struct culet_steering *steering, uint64_t limit, uint64_t used, uint64_t ruby);

/* The bytes between the use and the target. */
uint64_t culet_steering_room(uint64_t limit, uint64_t used);

/* Updates the budget. used: after the sweep, with free resident memory, which the next cycle uses first. exceeded:
 * the last cycle had a higher peak than the target. */
void culet_steering_update(struct culet_steering *steering, uint64_t limit, uint64_t used, uint64_t ruby, int exceeded);

/* Predicts the growth of Ruby's heap until a Ruby thread next runs a job.
 *
 * Ruby's heap grows between two collections when its free slots are used up, by up to 80 % at once, and does not
 * shrink. Small objects need no malloc, so counts of allocated bytes do not show them. Arithmetic only. */

/* A slot has 40 bytes or more; the table of a Hash, and the arrays of larger objects, come on top. */
#define CULET_FORECAST_OBJECT_BYTES 64
/* Maximum use including the predicted growth, in percent of the limit. */
#define CULET_FORECAST_MOST 96

struct culet_forecast {
    uint64_t allocated; /* objects since the start of Ruby, at the last job; 0: there was none */
    uint64_t most;      /* objects allocated between two jobs; decays by an eighth */
};

/* The predicted growth in bytes. allocated: objects since the start of Ruby; free: slots. */
uint64_t culet_forecast_growth(struct culet_forecast *forecast, uint64_t allocated, uint64_t free);
