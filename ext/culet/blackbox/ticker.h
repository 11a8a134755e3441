/* blackbox/ticker.h - the native thread that writes readings and the profile's largest sites. Knows no Ruby. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reading/group.h"

/* Starts the thread, which reads this control group too. Returns 0 or an errno. */
int culet_ticker_start(const struct culet_group *group);

/* Ends it; returns when it has ended. */
void culet_ticker_stop(void);

/* In a forked child: the thread is the parent's. */
void culet_ticker_reset(void);

/* Readings and profiles written so far, and the thread's processor time in nanoseconds. */
struct culet_ticker_stats {
    uint64_t readings, profiles, processor_time;
};
struct culet_ticker_stats culet_ticker_stats(void);
