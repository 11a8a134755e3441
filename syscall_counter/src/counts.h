/* counts.h - the calling thread's counters. */
#ifndef CULET_COUNTS_H
#define CULET_COUNTS_H

#include "../syscall_counter.h"

#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Initial-exec, so that reaching it never allocates: it is reached from malloc itself. */
extern __thread struct culet_syscall_counts culet_syscall_counts __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* One request for memory; a refused one does not count. Returns the block. */
static inline void *culet_count_block(void *block, size_t bytes)
{
    if (block) {
        culet_syscall_counts.mallocs++;
        culet_syscall_counts.malloc_bytes += bytes;
    }
    return block;
}

/* One system call that named a path. */
static inline void culet_count_path(bool failed)
{
    culet_syscall_counts.paths++;
    culet_syscall_counts.failed_paths += failed;
}

/* The function of that name behind this library. Ends the process where there is none: it was called by that name. */
void *culet_next_symbol(const char *name);

#endif
