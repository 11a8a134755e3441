/* agent/process_reading.h - the reading of the process for a client that asks every second ("figures" in the protocol).
 * The listener's thread makes the reading from data that native threads may read; no Ruby thread waits.
 *
 * Each answer requests a job that notes Ruby's counts. They are therefore as old as the last answer, or as the time
 * when Ruby last ran: in an idle process no job runs, and no page is written. */
#pragma once

#include "reading/reading.h"

/* Initialises the reading. Once, with the GVL, not during GC. May raise. */
void culet_process_reading_prepare(void);

/* Writes the members of struct culet_reading that are Ruby's, malloc's and the trims' as JSON, into
 * CULET_READING_JSON_BYTES. malloc's take at most one part in CULET_REST_PER_COST of the time and may be older. Returns
 * the length. */
size_t culet_process_reading_write(char *text);

/* Requests the job that notes Ruby's counts. In any thread, before Ruby ends. */
void culet_process_reading_refresh(void);

/* Resets the reading in a forked child. */
void culet_process_reading_reset(void);
