/* profile/readers.h - threads that read their own Ruby frames without the GVL.
 *
 * A thread has its frames to itself, and what they refer to is not freed, because the collector marks it. Compaction moves
 * it. So a reader counts itself before it asks whether a collection runs, and each marking, which comes before anything
 * is moved, waits for the readers that were earlier:
 *
 *     reader                                     collector
 *     count + 1; during GC? then none            during GC = true
 *     read                                       mark: wait until count == 0
 *     count - 1                                  move
 *
 * With GC.auto_compact, Ruby 3.1 also moves objects between two steps of a collection: then there are no readers. */
#pragma once

#include <stdbool.h>

/* Learns of GC.auto_compact. Once, in a Ruby thread. May raise. */
void culet_readers_prepare(void);

/* In a Ruby thread inside of code that has released the GVL. False: not now. Calls nothing that waits for the GVL. */
bool culet_readers_begin(void);
void culet_readers_end(void);

/* In a mark function that each collection calls. */
void culet_readers_wait(void);

/* In a forked child, which has none of the threads. */
void culet_readers_forget(void);
