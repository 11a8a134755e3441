/* file.h - the trace file of this process.
 *
 * No descriptor stays open: programs close all descriptors, or expect certain numbers. The file is opened by name for
 * each write and must still be the same file. It is never mapped for writing: truncating a mapped file ends the program
 * with SIGBUS.
 *
 * An executed program goes on in the file of its process. A forked child creates a file of its own at its first event;
 * most children execute another program before. The state
 * that parent and child must not share lies in a page that the kernel wipes in the child, which covers children of
 * clone(2), where no fork handler runs. */
#pragma once

#include "../format.h"

#include <stddef.h>

/* The wiped page. `epoch` identifies the process that has created a file; it is 0 before that, and in a new child. */
struct culet_process {
    _Atomic uint64_t epoch;
    _Atomic uint32_t lock;
    _Atomic bool stopped;              /* nothing more is recorded */
    struct culet_trace_header *header; /* a copy of the file's */
    bool executed;                     /* the file is one that another program began; no chunk says so yet */
    struct culet_chunk_info *chunks;   /* in use, the latest first */
    uint32_t spare_count;
    struct culet_trace_chunk *spare[64]; /* chunks of ended threads, with room left */
};

extern struct culet_process *culet_process;

/* The next sequence number of this process. A forked child continues from the parent's. */
extern _Atomic uint64_t culet_sequence;

/* CULET_TRACE_LIMIT in chunks; 0 without a limit. */
extern uint64_t culet_file_limit;

void culet_file_lock(void);
void culet_file_unlock(void);

/* Reads the environment and maps the page; false where this process is not recorded. */
bool culet_file_prepare(void);

/* Whether this process has a file; creates it. With the lock held. */
bool culet_file_create(void);

/* The file.
 *
 * @param end where the space ends that was reserved in it
 * @return a descriptor; -1 and errno where the file was truncated or replaced */
int culet_file_open(uint64_t end);

/* Reserves disk space for a chunk, so that recorded events can be written. The next two return 0 or an errno. */
int culet_file_reserve(int fd, uint64_t offset);

int culet_file_write(int fd, const void *bytes, size_t count, uint64_t offset);

/* Ends the recording with a line on stderr; the program continues. */
void culet_file_stop(enum culet_trace_stop reason, const char *message, int error);

/* Ends the recording because the file cannot be written, for the reason `error` (an errno), which a line on stderr
 * says. */
void culet_file_fail(int error);

/* Counts a call that is not recorded. */
void culet_file_count_lost(void);

/* Microseconds since the recording's start. */
uint64_t culet_file_time(void);
