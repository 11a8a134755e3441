#include "limit/forecast.h"

uint64_t culet_forecast_growth(struct culet_forecast *forecast, uint64_t allocated, uint64_t free)
{
    uint64_t spent = forecast->allocated != 0 && allocated > forecast->allocated ? allocated - forecast->allocated : 0;

    forecast->allocated = allocated;
    forecast->most -= forecast->most / 8;
    if (spent > forecast->most)
        forecast->most = spent;
    return forecast->most > free ? (forecast->most - free) * CULET_FORECAST_OBJECT_BYTES : 0;
}
