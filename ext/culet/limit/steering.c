#include "limit/steering.h"

static uint64_t target_bytes(uint64_t limit)
{
    return limit / 100 * CULET_STEERING_TARGET;
}

uint64_t culet_steering_room(uint64_t limit, uint64_t used)
{
    uint64_t target = target_bytes(limit);

    return target > used ? target - used : 0;
}

int culet_steering_far(const struct culet_steering *steering, uint64_t limit, uint64_t used, uint64_t ruby)
{
    return !steering->tight && used > 0 && culet_steering_room(limit, used) / 8 > ruby;
}

static uint64_t between(uint64_t bytes, uint64_t limit, uint64_t most)
{
    if (bytes < CULET_STEERING_LEAST_BYTES)
        bytes = CULET_STEERING_LEAST_BYTES;
    if (bytes < limit / CULET_STEERING_LEAST_PART)
        bytes = limit / CULET_STEERING_LEAST_PART;
    return bytes < most ? bytes : most;
}

void culet_steering_update(struct culet_steering *steering, uint64_t limit, uint64_t used, uint64_t ruby, int exceeded)
{
    uint64_t room = culet_steering_room(limit, used);

    if (room >= (steering->tight ? 4 : 2) * ruby && !exceeded) { /* so that it does not alternate */
        *steering = (struct culet_steering){.tightened = steering->tightened};
        return;
    }
    if (!steering->tight)
        steering->budget = room / 2;
    else if (exceeded)
        steering->budget = steering->budget / 3 * 2;
    else if (room > limit / CULET_STEERING_MARGIN)
        steering->budget += room / 4;
    steering->tight = 1;
    steering->budget = between(steering->budget, limit, ruby);
    steering->tightened += steering->budget < ruby;
}

uint64_t culet_forecast_growth(struct culet_forecast *forecast, uint64_t allocated, uint64_t free)
{
    uint64_t spent = forecast->allocated != 0 && allocated > forecast->allocated ? allocated - forecast->allocated : 0;

    forecast->allocated = allocated;
    forecast->most -= forecast->most / 8;
    if (spent > forecast->most)
        forecast->most = spent;
    return forecast->most > free ? (forecast->most - free) * CULET_FORECAST_OBJECT_BYTES : 0;
}
