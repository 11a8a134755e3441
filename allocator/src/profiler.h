/* profiler.h - starts and ends the sampling of the memory profile (sampling.h), for the profile and for a tracer that has
 * attached to the probes (probes.h), and carries it over a fork. sampler/core/host.h and profile_file.h have its settings. */
#pragma once

#include "probes.h"
#include "types.h"

/* Once, outside of malloc: starts the profile if it is set. */
void culet_profiler_setup(void);

/* Bits of what requests are sampled for. */
enum culet_profiler_use { CULET_PROFILER_PROFILE = 1, CULET_PROFILER_TRACER = 2 };
extern _Atomic unsigned culet_profiler_uses;

/* Starts or ends the sampling for a tracer. */
void culet_profiler_follow_tracer(void);

/* On the slow path of a request: whether a tracer has come or gone. */
static inline void culet_profiler_check(void)
{
#if CULET_PROBES
    bool samples = atomic_load_explicit(&culet_profiler_uses, memory_order_relaxed) & CULET_PROFILER_TRACER;
    if (CULET_UNLIKELY(culet_probes_alloc_traced() != samples))
        culet_profiler_follow_tracer();
#endif
}
