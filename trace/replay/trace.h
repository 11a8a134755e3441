/* trace.h - a trace file, read and checked; not mapped, because it could be cut off meanwhile. */
#ifndef CULET_TRACE_H
#define CULET_TRACE_H

#include "../format.h"

#include <stdbool.h>
#include <stddef.h>

struct culet_trace {
    const char *path;
    const struct culet_trace_header *header; /* as it was when the file was opened */
    int file;
    uint64_t size; /* likewise */
};

/* Opens a file; ends the program with a sentence where it is no trace, not whole, or cannot be read. */
struct culet_trace culet_trace_open(const char *path);

/* What to do with an event. Addresses are as the program saw them. */
struct culet_raw {
    enum culet_event event; /* TIME and THREAD are not told */
    uint32_t thread;
    uint64_t sequence;
    uint64_t after; /* of REALLOC: the number after the call */
    uint64_t gone;
    uint64_t got;
    uint64_t bytes;
    unsigned shift;       /* of ALIGNED */
    uint64_t microseconds; /* since the start, as last looked at; 0 for not since the event before */
};

/* Tells every event of the file, chunk by chunk; within a chunk as they were written. Ends the program with a
 * sentence where the file is damaged. */
void culet_trace_each(const struct culet_trace *trace, void (*tell)(void *with, const struct culet_raw *raw), void *with);

#endif
