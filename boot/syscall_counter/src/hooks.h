/* hooks.h - counts the calls of the malloc functions (replay/interposer/api.c): successful requests for memory. */
#pragma once

#include "counts.h"

#include <stdbool.h>
#include <stdint.h>

static inline void culet_hook_allocated(size_t bytes, const void *block, bool zeroed)
{
    (void)zeroed;
    if (!block)
        return;
    culet_syscall_counts.mallocs++;
    culet_syscall_counts.malloc_bytes += bytes;
}

static inline void culet_hook_aligned(size_t alignment, size_t bytes, const void *block)
{
    (void)alignment;
    culet_hook_allocated(bytes, block, false);
}

static inline void culet_hook_free(const void *block)
{
    (void)block;
}

static inline uint64_t culet_hook_before_realloc(const void *block)
{
    (void)block;
    return 0;
}

static inline void culet_hook_realloc(const void *block, size_t bytes, const void *moved, uint64_t before)
{
    (void)block, (void)before;
    culet_hook_allocated(bytes, moved, false);
}
