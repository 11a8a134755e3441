/* meter.h - what this process uses. */
#ifndef CULET_METER_H
#define CULET_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens what the meters read; ends the program with a sentence where /proc is not there.
 *
 * @param threads how many there will be */
void culet_meter_open(size_t threads);

/* Bytes of anonymous memory that are resident: the allocator's blocks and its own needs, the threads' stacks, and
 * some 100 KiB of libc's data; not the player's bookkeeping, which is shared memory (store.h). Exact: from
 * /proc/self/smaps_rollup, for which the kernel goes through all pages. Of so much memory that the kernel's running
 * counters are known to be right within 1 %, and before Linux 4.14, from those (statm). */
uint64_t culet_meter_resident(void);

/* Nanoseconds of CPU time, user and system, of the calling thread. */
uint64_t culet_meter_cpu(void);

/* Nanoseconds of a clock that only goes forward. */
uint64_t culet_meter_now(void);

/* Starts counting instructions in user mode, of this thread and all that it starts from here on.
 *
 * @return false where the machine or its administrator does not let them be counted */
bool culet_meter_count_instructions(void);

/* Instructions since then, those of threads that have ended among them. */
uint64_t culet_meter_instructions(void);

#endif
