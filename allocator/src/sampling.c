#define _GNU_SOURCE
#include "sampling.h"

#include "../../profile/samples.h"
#include "../../profile/random.h"
#include "abandoned.h"
#include "lock.h"
#include "pagemap.h"
#include "profile_file.h"
#include "program.h"

#include <errno.h>
#include <link.h>
#include <time.h>

static _Thread_local struct {
    uint32_t profile;  /* number of the profile that `distance` is for */
    uint64_t distance; /* bytes up to the next sample */
} sampler __attribute__((tls_model("initial-exec")));

bool culet_sampling_allowed(void)
{
    return !culet_profile_inside() && !culet_abandoned() &&
           !(atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire) && culet_lock_forking());
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

/* The library's code: its frames are the same in every stack, and are left out. In the tests it is part of the program. */
static uintptr_t code_start, code_end;

static void find_code(void)
{
#ifndef CULET_PREFIXED
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
    uintptr_t base = (uintptr_t)&__ehdr_start;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);

    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
        if (header[i].p_type != PT_LOAD || !(header[i].p_flags & PF_X))
            continue;
        code_start = base + header[i].p_vaddr;
        code_end = code_start + header[i].p_memsz;
    }
#endif
}

/* ---- epochs of a program without Ruby ---- */

#define EPOCH_SECONDS 10

static bool has_epochs;
static _Atomic int64_t epoch_start; /* in seconds */

static int64_t seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

void culet_sampling_setup(void)
{
    find_code();
    has_epochs = !culet_program_ruby();
    atomic_store_explicit(&epoch_start, seconds(), memory_order_relaxed);
}

void culet_sampling_advance_epoch(void)
{
    int64_t start = atomic_load_explicit(&epoch_start, memory_order_relaxed);
    int64_t passed = has_epochs ? (seconds() - start) / EPOCH_SECONDS : 0;

    if (!passed || !atomic_compare_exchange_strong_explicit(&epoch_start, &start, start + passed * EPOCH_SECONDS,
                                                            memory_order_relaxed, memory_order_relaxed))
        return;
    for (int64_t i = 0; i < passed && i <= CULET_PROFILE_SURVIVALS; i++)
        culet_profile_api.next_epoch();
}

/* ---- samples ---- */

/* Adds a sample with the calling thread's stack. Returns its number, or 0 if there is no room. */
static __attribute__((noinline)) uint32_t record(size_t bytes)
{
    uint64_t words[CULET_PROFILE_FRAMES];
    size_t from = 0;
    int saved = errno;

    culet_sampling_advance_epoch();
    size_t count = culet_profile_api.capture(words, CULET_PROFILE_FRAMES);
    while (from < count && words[from] - code_start < code_end - code_start)
        from++;
    uint32_t sample =
        culet_profile_api.add(CULET_PROFILE_MALLOC, bytes, culet_profile_weight(bytes), 0, words + from, count - from);
    culet_profile_file_sampled(words, count);
    errno = saved;
    return sample;
}

void *culet_sampling_get(size_t usable, size_t alignment, bool *zeroed)
{
    bool fresh;
    void *block = culet_large_get(usable, alignment, &fresh);

    if (!block)
        return NULL;
    *zeroed = fresh;
    culet_large_set_sample(block, usable, record(usable));
    return block;
}

void *culet_sampling_get_large(size_t bytes, size_t alignment, bool *zeroed)
{
    void *block = culet_large_get(bytes, alignment, zeroed);

    if (culet_bin_profiled() && block) {
        bytes = culet_large_bytes(culet_pagemap_span((uintptr_t)block));
        if (culet_sampling_count(bytes))
            culet_large_set_sample(block, 0, record(bytes));
    }
    return block;
}

void culet_sampling_resized(struct culet_span *span, size_t before)
{
    struct culet_large *block = (struct culet_large *)span;
    size_t bytes = culet_large_bytes(span);

    if (bytes == before)
        return;
    if (block->sample) {
        culet_large_remove_sample(block->sample);
        block->sample = 0;
    }
    if (culet_sampling_due(bytes))
        block->sample = record(bytes);
}
