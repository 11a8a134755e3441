/* limit/ticker.h - the native thread of a watched limit. It reads the use. Above the alarm level it returns
 * free memory and wakes the Ruby thread of culet/limit, which runs the slower steps. Above the critical level it makes
 * Ruby collect garbage at its next malloc. */
#pragma once

#include "limit/state.h"

/* Starts the thread, or passes new settings to it. Returns 0 or an errno. With the GVL, not during GC. */
int culet_limit_ticker_start(const struct culet_limit_settings *settings);

/* Ends the thread. Closes no files. */
void culet_limit_ticker_stop(void);
