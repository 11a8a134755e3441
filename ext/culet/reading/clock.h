/* reading/clock.h - the clocks of the extension: CLOCK_MONOTONIC, CLOCK_REALTIME, or the calling thread's processor time. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CULET_SECOND UINT64_C(1000000000)

/* Nanoseconds of a clock of clock_gettime(2). */
static inline uint64_t culet_clock(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * CULET_SECOND + (uint64_t)time.tv_nsec;
}

/* Seconds of a clock of clock_gettime(2). */
static inline double culet_clock_seconds(clockid_t clock)
{
    return (double)culet_clock(clock) * 1e-9;
}

/* Milliseconds of CLOCK_MONOTONIC. */
static inline int64_t culet_clock_milliseconds(void)
{
    return (int64_t)(culet_clock(CLOCK_MONOTONIC) / 1000000);
}

/* Seconds of CLOCK_MONOTONIC since `start`, a time of that clock in seconds. */
static inline double culet_seconds_since(double start)
{
    return culet_clock_seconds(CLOCK_MONOTONIC) - start;
}
