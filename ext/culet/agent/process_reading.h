/* agent/process_reading.h - the reading of the process for a client that asks every second ("figures" in the protocol).
 * The listener's thread makes it from what native threads may read; no Ruby thread waits for it.
 *
 * Ruby's counts are noted by a job that each answer requests. So they are those of the last answer, or of the time when
 * Ruby last ran: in a process that is idle nothing runs and no page is written. */
#pragma once

#include "reading/reading.h"

/* Once, with the GVL, not during GC. May raise. */
void culet_process_reading_prepare(void);

/* Writes the members of struct culet_reading that are Ruby's, malloc's and the trims' as JSON, into
 * CULET_READING_JSON_BYTES. malloc's take at most one part in CULET_REST_PER_COST of the time and may be older. Returns
 * the length. */
size_t culet_process_reading_write(char *text);

/* Has Ruby's counts noted soon. In any thread, before Ruby ends. */
void culet_process_reading_refresh(void);

/* In a forked child. */
void culet_process_reading_reset(void);
