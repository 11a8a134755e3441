/* sampler.h - samples of the memory profile (sampler/core/profile.h) in front of any allocator: the rare cases of hooks.h.
 *
 * A request counts with the bytes that it asks for against a distance of its thread. The stack is captured after the
 * block is allocated, with no lock held. What is allocated during that is not sampled. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of the running profile; 0: none. */
extern _Atomic uint32_t culet_sampler_profile;

struct culet_sampler_thread {
    uint32_t profile;  /* number of the profile that `distance` is for */
    bool busy;         /* holds the lock, or waits for it */
    bool forking;      /* holds the lock from the fork's beginning to its end */
    uint64_t distance; /* bytes up to the next sample */
};

extern _Thread_local struct culet_sampler_thread culet_sampler_thread __attribute__((tls_model("initial-exec")));

/* A request that reaches the distance, or the thread's first one of a profile. */
void culet_sampler_count(uint32_t profile, size_t bytes, void *block);

/* A block that may be a sample is about to be freed. */
void culet_sampler_free(const void *block);

/* It is about to be reallocated. Returns its sample, which the table has not any more; 0: it is none. */
uint32_t culet_sampler_take(const void *block);

/* It was reallocated; `stays`: that failed. */
void culet_sampler_reallocated(const void *block, uint32_t sample, bool stays);
