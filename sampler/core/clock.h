/* clock.h - nanoseconds of the clocks. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock of clock_gettime(2). CLOCK_MONOTONIC_COARSE is as fine as the ages of samples need. */
static inline uint64_t culet_profile_clock(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
