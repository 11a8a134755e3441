/* clock.h - clocks and short sleeps. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t culet_clock_read(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Nanoseconds of the monotonic clock. */
static inline uint64_t culet_now(void)
{
    return culet_clock_read(CLOCK_MONOTONIC);
}

/* Nanoseconds of processor time used by this program. */
static inline uint64_t culet_cpu_now(void)
{
    return culet_clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void culet_sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

    nanosleep(&time, NULL);
}
