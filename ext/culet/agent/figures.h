/*
 * agent/figures.h - the figures of the process for a reader that asks every second. The listener's thread writes them
 * from what native threads may read; no Ruby thread waits for it.
 *
 * Ruby's counts are noted by a job that each answer requests. So they are those of the last answer, or of the time when
 * Ruby last ran: in a process that is idle nothing runs and no page is written.
 */
#ifndef CULET_AGENT_FIGURES_H
#define CULET_AGENT_FIGURES_H

#include <stddef.h>

/* The longest answer. */
#define CULET_FIGURES_BYTES 768

/* Once, with the GVL, not during GC. May raise. */
void culet_figures_prepare(void);

/*
 * Writes a JSON object of Integers. Those that Ruby or the allocator does not count are missing:
 *   collections, minor_gcs, major_gcs, gc_milliseconds, live_slots, slots, ruby_page_bytes (of all heap pages),
 *   allocated_objects; malloc_used_bytes, malloc_free_bytes, malloc_metadata_bytes, which take at most one ten-thousandth
 *   of the time and may be older; trims, trim_returned_bytes; profile: 1 if the memory profile runs; limit: 1
 *   if culet/limit watches a limit.
 *
 * Returns the length, at most CULET_FIGURES_BYTES - 1.
 */
size_t culet_figures_write(char *text);

/* Has Ruby's counts noted soon. In any thread, before Ruby ends. */
void culet_figures_refresh(void);

/* In a forked child. */
void culet_figures_reset(void);

#endif
