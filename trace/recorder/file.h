/* file.h - the file that this process records into, and the lending of its chunks to threads.
 *
 * A chunk on loan lies in memory (stage.h); the file gets it when it is full, or bit by bit where nobody else would
 * copy it. No file is mapped: one that is cut off then would end the program.
 *
 * No descriptor is kept: programs close all of them, or expect certain numbers to be free. The file is opened anew
 * for each chunk, by its name, and must still be the same file.
 *
 * A forked child has a file of its own, which it makes when it first has something to record; most children run
 * another program before that. What the two must not share lies in a page that the kernel wipes in the child, so that
 * no handler need run: children of clone(2) are covered as well. */
#ifndef CULET_FILE_H
#define CULET_FILE_H

#include "../format.h"

#include <stdbool.h>

/* The page. `epoch` is 0 before there is a file, and in a child that has none yet; an epoch is of one process. */
struct culet_shared {
    _Atomic uint64_t epoch;
    _Atomic uint32_t lock;
    _Atomic bool stopped; /* nothing more is recorded */
    struct culet_trace_header *header; /* a copy in memory of what stands in the file */
    struct culet_loan *loans; /* all chunks that are not in the file as a whole, the latest first */
    uint32_t spares;
    struct culet_trace_chunk *spare[64]; /* chunks of threads that have ended, to be written on */
};

extern struct culet_shared *culet_shared;

/* The next sequence number of this process. It is copied by a fork, as is right: the child goes on from there. */
extern _Atomic uint64_t culet_sequence;

/* Lends a chunk with room for a THREAD event and another one, making the file first if need be.
 *
 * @return NULL when nothing is, or can be, recorded any more */
struct culet_trace_chunk *culet_file_lend(void);

/* Takes back a chunk that has room left. */
void culet_file_return(struct culet_trace_chunk *chunk);

/* Ends the loan of a chunk that is full: it goes into the file. */
void culet_file_full(struct culet_trace_chunk *chunk);

/* Writes what a chunk has so far into the file, unless `culet trace` does so. */
void culet_file_flush(struct culet_trace_chunk *chunk);

/* The same for all chunks of this process. */
void culet_file_flush_all(void);

/* Counts a call that is not recorded. */
void culet_file_lost(void);

/* Microseconds since the file's start. */
uint64_t culet_file_time(void);

/* The number of this thread, from 1 on. */
uint32_t culet_file_thread(void);

#endif
