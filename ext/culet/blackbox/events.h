/* blackbox/events.h - requests and jobs in the black box.
 *
 *   begin: a slot of `running` --(end)--> a slot of `finished`, in turns
 *
 * No system call, no lock, no allocation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the event, 0 if there is no black box or no free slot. In a Ruby thread; so the others. Labels are cut. */
uint64_t culet_events_begin(const char *label, size_t length);

/* From now on the event has this label. Does nothing for an event of another process. */
void culet_events_rename(uint64_t event, const char *label, size_t length);

void culet_events_end(uint64_t event);

/* Events that run, and that have begun. In any thread. */
void culet_events_count(uint64_t *running, uint64_t *begun);

/* In a forked child: none runs. */
void culet_events_reset(void);
