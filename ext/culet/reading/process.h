/* reading/process.h - what the kernel says of the memory of one process. Knows no Ruby, allocates nothing; any thread.
 *
 * folder: that of a process, "/proc/self" or "/proc/PID", or one with copies of its files. Bytes, but where a name says
 * otherwise; CULET_UNKNOWN for a line that the kernel does not write. */
#pragma once

#include "reading/kernel_file.h"

#define CULET_OWN_PROCESS "/proc/self"

/* statm: two microseconds. The pages of files include shared memory. */
struct culet_sizes {
    uint64_t space, resident, files;
};

static inline uint64_t culet_sizes_anonymous(const struct culet_sizes *sizes)
{
    return sizes->resident > sizes->files ? sizes->resident - sizes->files : 0;
}

/* Returns false, and sets all to CULET_UNKNOWN, if it cannot be read. */
bool culet_read_sizes(const char *folder, struct culet_sizes *sizes);

/* Resident bytes of this process, or CULET_UNKNOWN. */
uint64_t culet_resident_bytes(void);

/* Anonymous resident bytes of this process, or CULET_UNKNOWN. */
uint64_t culet_anonymous_bytes(void);

/* stat: state, minor faults, processor time and start in clock ticks (sysconf(_SC_CLK_TCK)). */
struct culet_stat {
    char state;
    uint64_t faults, ticks, start;
};

/* Returns whether it can be read, and the process has memory: it is neither a zombie nor dead. */
bool culet_read_stat(const char *folder, struct culet_stat *stat);

/* smaps_rollup: the kernel walks the page tables for it, 20 us for each MiB. */
struct culet_rollup {
    uint64_t resident, proportional, shared_clean, shared_dirty, private_clean, private_dirty, anonymous, swapped;
};

/* Returns false, and sets all to CULET_UNKNOWN, if it cannot be read. */
bool culet_read_rollup(const char *folder, struct culet_rollup *rollup);
