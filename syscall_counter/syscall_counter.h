/*
 * syscall_counter.h - what culet-syscall-counter.so counts, and how whoever runs in the same process reads it.
 *
 * The library stands before libc and whatever allocator is preloaded, passes every call on, and counts for each thread:
 * requests for memory, and file-system calls that name a path. It knows no Ruby.
 *
 *   LD_PRELOAD=culet-syscall-counter.so PROGRAM
 */
#ifndef CULET_SYSCALL_COUNTER_H
#define CULET_SYSCALL_COUNTER_H

#include <stdint.h>

/*
 * mallocs: calls of malloc, calloc, realloc, reallocarray and the aligned ones that got memory; malloc_bytes: what they
 *   asked for, a realloc its whole new size.
 * paths: system calls that name a path, successful or not: open, openat, stat, lstat, statx, access, readlink and their
 *   likes, opendir and fopen, and each of those that realpath makes. What the loader does to find a shared library is
 *   not among them, because it makes its system calls itself.
 * failed_paths: those of them that returned an error. That a file is no symbolic link, readlink's EINVAL, is an answer
 *   and no error.
 */
struct culet_syscall_counts {
    uint64_t mallocs, malloc_bytes, paths, failed_paths;
};

/* Fills in what the calling thread has done so far. The only symbol besides libc's own; look it up with dlsym. */
void culet_syscall_counter_read(struct culet_syscall_counts *calls);

#endif
