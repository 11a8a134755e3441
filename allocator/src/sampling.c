#define _GNU_SOURCE
#include "sampling.h"

#include "../../sampler/core/host.h"
#include "../../sampler/core/random.h"
#include "../../sampler/core/samples.h"
#include "abandoned.h"
#include "lock.h"
#include "pagemap.h"
#include "probes.h"
#include "profile_file.h"

static _Thread_local struct {
    uint32_t profile;  /* number of the profile that `distance` is for */
    uint64_t distance; /* bytes up to the next sample */
} sampler __attribute__((tls_model("initial-exec")));

bool culet_sampling_allowed(void)
{
    if (CULET_UNLIKELY(culet_profile_inside())) {
        culet_profile_skip(CULET_SKIP_INSIDE);
        return false;
    }
    if (culet_abandoned() || culet_lock_forking()) {
        culet_profile_skip(CULET_SKIP_FORKING);
        return false;
    }
    return true;
}

bool culet_sampling_count(size_t bytes)
{
    uint32_t profile = atomic_load_explicit(&culet_bin_profile, memory_order_relaxed);

    if (sampler.profile != profile) {
        sampler.profile = profile;
        sampler.distance = culet_profile_distance();
    }
    if (CULET_LIKELY(bytes < sampler.distance)) {
        sampler.distance -= bytes;
        return false;
    }
    sampler.distance = culet_profile_distance();
    return culet_sampling_allowed();
}

/* ---- samples ---- */

/* For the profile and for a tracer. Returns what the block keeps until it is freed; 0: nothing. */
static uint32_t record(const void *block, size_t bytes)
{
    double weight = culet_profile_weight(bytes);
    uint32_t sample = 0;

    if (culet_profile_api.running()) {
        sample = culet_host_add(block, bytes, weight);
        culet_profile_file_sampled();
    }
    if (!culet_probes_alloc_traced())
        return sample;
    culet_probes_alloc(block, bytes, (uint64_t)(weight * (double)bytes + 0.5));
    return sample ? sample : CULET_SAMPLE_TRACED;
}

void *culet_sampling_get(size_t usable, size_t alignment, bool *zeroed)
{
    bool fresh;
    void *block = culet_large_get(usable, alignment, &fresh);

    if (!block) {
        culet_profile_skip(CULET_SKIP_MEMORY);
        return NULL;
    }
    *zeroed = fresh;
    culet_large_set_sample(block, usable, record(block, usable));
    return block;
}

void *culet_sampling_get_large(size_t bytes, size_t alignment, bool *zeroed)
{
    void *block = culet_large_get(bytes, alignment, zeroed);

    if (culet_bin_profiled() && block) {
        bytes = culet_large_bytes(culet_pagemap_span((uintptr_t)block));
        if (culet_sampling_count(bytes))
            culet_large_set_sample(block, 0, record(block, bytes));
    }
    return block;
}

void culet_sampling_resized(struct culet_span *span, const void *start, size_t before)
{
    struct culet_large *block = (struct culet_large *)span;
    size_t bytes = culet_large_bytes(span);

    if (bytes == before)
        return;
    if (block->sample) {
        if (culet_probes_free_traced())
            culet_probes_free(start);
        culet_large_remove_sample(block->sample);
        block->sample = 0;
    }
    if (culet_sampling_due(bytes))
        block->sample = record((void *)span->start, bytes);
}
