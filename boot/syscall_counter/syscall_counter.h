/* syscall_counter.h - what culet-syscall-counter.so counts, and how code in the same process reads it.
 *
 * The library is preloaded before the allocator, passes all calls on, and counts per thread: requests for memory, and
 * file system calls with a path. It knows no Ruby.
 *
 *   LD_PRELOAD=culet-syscall-counter.so PROGRAM */
#pragma once

#include <stdint.h>

/* mallocs: successful calls of malloc, calloc, realloc, reallocarray and the aligned functions; malloc_bytes: requested
 * bytes, of a realloc the new size.
 * paths: system calls with a path, successful or not: open, openat, stat, lstat, statx, access, readlink and the like,
 * opendir, fopen, and those inside realpath. Not those of the dynamic linker, which cannot be intercepted.
 * failed_paths: those that failed. readlink's EINVAL, for a path that is no link, is no failure. */
struct culet_syscall_counts {
    uint64_t mallocs, malloc_bytes, paths, failed_paths;
};

/* Reads the calling thread's counts. The only exported symbol besides libc's; look it up with dlsym. */
void culet_syscall_counter_read(struct culet_syscall_counts *calls);
