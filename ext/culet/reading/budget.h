/* reading/budget.h - how often a reading that takes long may be repeated: it rests for a multiple of what it has cost,
 * so that it takes a fixed part of the time however large the process is. One thread at a time. */
#pragma once

#include "reading/clock.h"

/* The pause after a count of malloc's blocks, as a multiple of its cost, for a reader that asks every second: calls of
 * malloc wait for the count under glibc. */
#define CULET_REST_PER_COST 10000

/* Nanoseconds; all 0 before the first reading. The cost is processor time of the thread: on a busy machine the time
 * that passes is longer, and figures would be old. */
struct culet_budget {
    uint64_t ended, cost; /* of the last reading; `ended` by CLOCK_MONOTONIC */
};

/* When the next reading is due, by CLOCK_MONOTONIC: after rest_per_cost times the cost, and at least `least`
 * nanoseconds. */
static inline uint64_t culet_budget_due(const struct culet_budget *budget, uint64_t rest_per_cost, uint64_t least)
{
    uint64_t rest = budget->cost * rest_per_cost;

    return budget->ended == 0 ? 0 : budget->ended + (rest > least ? rest : least);
}

/* After a reading. began: the thread's processor time before it. */
static inline void culet_budget_end(struct culet_budget *budget, uint64_t began)
{
    budget->ended = culet_clock(CLOCK_MONOTONIC);
    budget->cost = culet_clock(CLOCK_THREAD_CPUTIME_ID) - began;
}
