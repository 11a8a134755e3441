/* sampling.h - which requests are samples of the memory profile (sampler/core/profile.h), and their blocks.
 *
 *     small    the countdown of the class in the arena reaches the request (bin.h)
 *     others   large and huge ones, and all of a hardened process: the bytes of the thread's requests reach a distance
 *
 * The block of a small sample is a range of pages of its own, with the usable bytes that it would have in a slab. So the
 * fast path of a free does not ask whether a block was sampled: it takes the path of large blocks, whose descriptor has
 * the sample's number.
 *
 * The stack is captured outside of all arenas and locks. What the capture allocates is not sampled, nor what is allocated
 * by a thread that forks, until the fork ends, and in an abandoned child. profiler.h starts and stops the profile. */
#pragma once

#include "bin.h"
#include "large.h"
#include "types.h"

/* Counts a request of so many usable bytes against the thread's distance. True: it is a sample. */
bool culet_sampling_count(size_t bytes);

/* Whether the calling thread may take a sample that is due. If not, the sample is counted as skipped. */
bool culet_sampling_allowed(void);

static inline bool culet_sampling_due(size_t bytes)
{
    return culet_bin_profiled() && culet_sampling_count(bytes);
}

/* A sample in place of a slab's block: page-aligned at least. Stores whether it reads as zeros. NULL, and nothing is stored,
 * when out of memory. */
void *culet_sampling_get(size_t usable, size_t alignment, bool *zeroed);

/* A large or huge block, as from culet_large_get. */
void *culet_sampling_get_large(size_t bytes, size_t alignment, bool *zeroed);

/* After realloc has resized a large or huge block, which had `before` usable bytes at `start`, in place or by moving its
 * pages: counts as a free and a request. */
void culet_sampling_resized(struct culet_span *span, const void *start, size_t before);
