/* trace_file.h - reads and checks a trace file (format.h). The file is not mapped: it may be truncated meanwhile. */
#pragma once

#include "../format.h"

#include <stddef.h>

struct culet_trace_file {
    const char *path;
    const struct culet_trace_header *header; /* as of the opening */
    int fd;
    uint64_t size; /* likewise */
};

/* Opens a trace; ends the program with a message where the file is not a complete trace. */
struct culet_trace_file culet_trace_file_open(const char *path);

/* An event other than TIME and THREAD, with addresses as the program saw them. */
struct culet_trace_event {
    enum culet_event kind;
    uint32_t thread;
    uint64_t sequence;
    uint64_t end_sequence; /* of REALLOC: the number taken after the call */
    uint64_t freed;
    uint64_t allocated;
    uint64_t bytes;
    unsigned shift;        /* of ALIGNED */
    uint64_t microseconds; /* since the start, if the clock was read before this event; otherwise 0 */
};

/* Calls `visit` for every event of a program of the process, chunk by chunk, each chunk in the recorded order. Ends the
 * process with a message where the file is damaged.
 *
 * @param program 0: the first that the process executed while it was recorded */
void culet_trace_file_each(const struct culet_trace_file *trace, uint32_t program,
                           void (*visit)(void *context, const struct culet_trace_event *event), void *context);
