/*
 * limit/forecast.h - by how much Ruby's heap will grow until the next point where a Ruby thread runs a job.
 *
 * Ruby's heap grows between two collections when its free slots are used up, by up to 80 % at once, and does not
 * shrink. Small objects need no malloc, so no count of allocated bytes tells. Arithmetic only.
 */
#ifndef CULET_LIMIT_FORECAST_H
#define CULET_LIMIT_FORECAST_H

#include <stdint.h>

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

#endif
