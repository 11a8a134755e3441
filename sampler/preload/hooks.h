/* hooks.h - samples the calls of the malloc functions (../interposer/api.c). What most calls take: a request, a few
 * instructions; a free, a look into the table of live samples. */
#pragma once

#include "live.h"
#include "sampler.h"

static inline void culet_hook_allocated(size_t bytes, void *block, bool zeroed)
{
    uint32_t profile = atomic_load_explicit(&culet_sampler_profile, memory_order_relaxed);

    (void)zeroed;
    if (__builtin_expect(!profile, 1) || !block)
        return;
    if (__builtin_expect(culet_sampler_thread.profile == profile && bytes < culet_sampler_thread.distance, 1))
        culet_sampler_thread.distance -= bytes;
    else
        culet_sampler_count(profile, bytes, block);
}

static inline void culet_hook_aligned(size_t alignment, size_t bytes, void *block)
{
    (void)alignment;
    culet_hook_allocated(bytes, block, false);
}

/* Before the block is freed: another thread may get one at this address at once. */
static inline void culet_hook_free(const void *block)
{
    if (__builtin_expect(culet_live_has(block), 0))
        culet_sampler_free(block);
}

/* Returns the block's sample, or 0. It is not in the table during the call. */
static inline uint64_t culet_hook_before_realloc(const void *block)
{
    return __builtin_expect(culet_live_has(block), 0) ? culet_sampler_take(block) : 0;
}

/* A free and a request. `moved` is NULL after a failure, and where 0 bytes were requested. */
static inline void culet_hook_realloc(void *block, size_t bytes, void *moved, uint64_t sample)
{
    if (__builtin_expect(sample != 0, 0))
        culet_sampler_reallocated(block, (uint32_t)sample, !moved && bytes);
    culet_hook_allocated(bytes, moved, false);
}
