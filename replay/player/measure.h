/* measure.h - memory, time and instructions of this process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens the files in /proc; ends the program with a message where /proc is missing.
 *
 * @param threads that the replay will start */
void culet_measure_open(size_t threads);

/* Resident anonymous bytes: the allocator's blocks and metadata, the threads' stacks, and about 110 KiB of libc's data;
 * not the replay's own memory (mapping.h). From smaps_rollup, which is exact but walks all pages; from statm for large
 * processes, where its error is below 1 %, and before Linux 4.14. */
uint64_t culet_measure_resident(void);

/* CPU time of the calling thread, user and system, in nanoseconds. */
uint64_t culet_measure_cpu(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t culet_measure_now(void);

/* Starts counting user-mode instructions of this thread and of the threads it starts.
 *
 * @return false where the machine or its settings do not allow it */
bool culet_measure_count_instructions(void);

/* Instructions since then, including those of ended threads. */
uint64_t culet_measure_instructions(void);
