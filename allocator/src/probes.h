/* probes.h - the memory contract of the OpenTelemetry eBPF profiler: USDT probes at the samples of the memory profile.
 *
 *     otel_memory:alloc(pointer, size, weighted_bytes)    a sampled block; weighted_bytes: what it stands for, in bytes
 *     otel_memory:free(pointer)                           a sampled block is about to be freed
 *
 * A tracer that attaches to a probe increments its semaphore. While that of `alloc` is not 0, requests are sampled, whether
 * the profile runs or not (profiler.h). The arguments are in the registers of a call's arguments: some tracers read them
 * from there instead of decoding the note. Without <sys/sdt.h> there are no probes. */
#pragma once

#include "types.h"

#if !defined(CULET_WITHOUT_PROBES) && __has_include(<sys/sdt.h>)
#define CULET_PROBES 1

/* Names that sys/sdt.h prescribes. */
extern unsigned short otel_memory_alloc_semaphore __attribute__((visibility("hidden")));
extern unsigned short otel_memory_free_semaphore __attribute__((visibility("hidden")));

static inline bool culet_probes_alloc_traced(void)
{
    return CULET_UNLIKELY(__atomic_load_n(&otel_memory_alloc_semaphore, __ATOMIC_RELAXED) != 0);
}

static inline bool culet_probes_free_traced(void)
{
    return CULET_UNLIKELY(__atomic_load_n(&otel_memory_free_semaphore, __ATOMIC_RELAXED) != 0);
}

void culet_probes_alloc(const void *block, uint64_t size, uint64_t weighted_bytes);
void culet_probes_free(const void *block);

#else
#define CULET_PROBES 0

static inline bool culet_probes_alloc_traced(void)
{
    return false;
}

static inline bool culet_probes_free_traced(void)
{
    return false;
}

static inline void culet_probes_alloc(const void *block, uint64_t size, uint64_t weighted_bytes)
{
    (void)block, (void)size, (void)weighted_bytes;
}

static inline void culet_probes_free(const void *block)
{
    (void)block;
}
#endif
