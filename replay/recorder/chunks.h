/* chunks.h - the chunks that threads write to. A chunk lies in memory; the file receives its events in parts. */
#pragma once

#include "../format.h"

/* A chunk for the calling thread, with room for a THREAD event and another one; creates the file first.
 *
 * @return NULL when nothing more is recorded */
struct culet_trace_chunk *culet_chunks_take(void);

/* Takes back a chunk with room left, for another thread. */
void culet_chunks_return(struct culet_trace_chunk *chunk);

/* Writes a full chunk to the file and releases its memory. */
void culet_chunks_finish(struct culet_trace_chunk *chunk);

/* Writes the new events of a chunk to the file where they have a kilobyte. */
void culet_chunks_flush(struct culet_trace_chunk *chunk);

/* Writes the new events of all chunks of this process to the file. */
void culet_chunks_flush_all(void);
