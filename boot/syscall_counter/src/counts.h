/* counts.h - the calling thread's counters. */
#pragma once

#include "../syscall_counter.h"

#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Initial-exec, because malloc uses it: access must not allocate. */
extern __thread struct culet_syscall_counts culet_syscall_counts
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Counts a system call with a path. */
static inline void culet_count_path(bool failed)
{
    culet_syscall_counts.paths++;
    culet_syscall_counts.failed_paths += failed;
}

/* The next definition of a symbol after this library's. Aborts if there is none: the program called it by that name. */
void *culet_next_symbol(const char *name);
