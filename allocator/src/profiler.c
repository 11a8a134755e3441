#define _GNU_SOURCE
#include "profiler.h"

#include "../../sampler/core/host.h"
#include "../../sampler/core/samples.h"
#include "bin.h"
#include "heap.h"
#include "probes.h"
#include "profile_file.h"
#include "program.h"
#include "purge.h"
#include "sampling.h"

/* ---- start and end ---- */

_Atomic unsigned culet_profiler_uses;
static _Atomic uint32_t started; /* profiles so far */

/* Does what `culet_profiler_uses` says, also if another thread changes it meanwhile. Units that are current would be used
 * without being counted, until they are empty. */
static void apply_uses(void)
{
    unsigned uses;

    do {
        uses = atomic_load(&culet_profiler_uses);
        atomic_store(&culet_bin_profile, uses ? atomic_fetch_add(&started, 1) + 1 : 0);
    } while (uses != atomic_load(&culet_profiler_uses));
    culet_purge_drop_current();
}

static void begin(void)
{
    if (culet_heap_dormant())
        return;
    atomic_fetch_or(&culet_profiler_uses, CULET_PROFILER_PROFILE);
    apply_uses();
}

static void end(void)
{
    if (culet_heap_dormant())
        return;
    atomic_fetch_and(&culet_profiler_uses, ~(unsigned)CULET_PROFILER_PROFILE);
    apply_uses();
}

void culet_profiler_follow_tracer(void)
{
    bool traced = culet_probes_alloc_traced();

    if (!culet_sampling_allowed())
        return;
    unsigned before = traced ? atomic_fetch_or(&culet_profiler_uses, CULET_PROFILER_TRACER)
                             : atomic_fetch_and(&culet_profiler_uses, ~(unsigned)CULET_PROFILER_TRACER);
    /* Of several threads, the first. */
    if (traced != ((before & CULET_PROFILER_TRACER) != 0))
        apply_uses();
}

/* ---- fork ---- */

static void after_fork_in_parent(void)
{
    culet_profile_parent();
    culet_large_remove_forked_samples();
}

static void after_fork_in_child(void)
{
    culet_profile_child();
    culet_large_remove_forked_samples();
}

static const struct culet_fork_hooks profile_hooks = {culet_profile_inside, culet_profile_prepare, after_fork_in_parent,
                                                      after_fork_in_child};
static const struct culet_fork_hooks file_hooks = {culet_profile_file_inside, culet_profile_file_before_fork,
                                                   culet_profile_file_after_fork_in_parent,
                                                   culet_profile_file_after_fork_in_child};

/* ---- set-up ---- */

void culet_profiler_setup(void)
{
    /* Without /proc the peak is that of the live bytes. */
    struct culet_profile_host host = {.started = begin, .stopped = end, .resident = culet_host_resident()};

    culet_heap_set_fork_hooks(&file_hooks, &profile_hooks);
    culet_host_setup(!culet_program_ruby());
    culet_profile_file_setup();
    culet_profile_set_host(&host);
    if (culet_settings.profile_bytes && !culet_profile_api.start(culet_settings.profile_bytes))
        culet_host_complain("culet: no memory for the profile\n");
}
