#define _GNU_SOURCE
#include "profiler.h"

#include "../../profile/samples.h"
#include "abandoned.h"
#include "bin.h"
#include "heap.h"
#include "lock.h"
#include "os.h"
#include "profile_file.h"
#include "program.h"
#include "purge.h"
#include "sampling.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- resident size ---- */

/* It is read at most once in such a time: that takes as long as a sample. */
#define RESIDENT_NANOSECONDS 2000000

static uint64_t read_resident(void)
{
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);

    if (file >= 0)
        close(file);
    const char *second = got > 0 ? strchr(text, ' ') : NULL;
    return second ? strtoul(second, NULL, 10) * culet_os_page_bytes() : 0;
}

/* By the profile, under its lock. */
static uint64_t resident(void)
{
    static uint64_t last, at;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (nanoseconds - at < RESIDENT_NANOSECONDS)
        return last;
    at = nanoseconds;
    uint64_t bytes = read_resident();
    if (bytes)
        last = bytes;
    return last;
}

/* ---- start and end ---- */

#define NO_MEMORY "culet: no memory for the profile\n"

static _Atomic uint32_t started; /* profiles so far */

/* Units that are current would be used without being counted, until they are empty. */
static void begin(void)
{
    if (culet_heap_dormant())
        return;
    uint32_t number = atomic_fetch_add_explicit(&started, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&culet_bin_profile, number, memory_order_relaxed);
    culet_purge_drop_current();
}

static void end(void)
{
    atomic_store_explicit(&culet_bin_profile, 0, memory_order_relaxed);
    if (!culet_heap_dormant())
        culet_purge_drop_current();
}

void culet_profiler_setup(void)
{
    struct culet_profile_host host = {.started = begin, .stopped = end};

    /* Without /proc the peak is that of the live bytes. */
    if (read_resident())
        host.resident = resident;
    culet_sampling_setup();
    culet_profile_file_setup();
    culet_profile_set_host(&host);
    if (culet_program_profile_bytes() && !culet_profile_api.start(culet_program_profile_bytes()))
        culet_os_write_error(NO_MEMORY, sizeof NO_MEMORY - 1);
}

/* ---- fork ---- */

void culet_profiler_before_fork(void)
{
    culet_profile_prepare();
}

void culet_profiler_after_fork_in_parent(void)
{
    culet_profile_parent();
    culet_large_remove_forked_samples();
}

void culet_profiler_after_fork_in_child(void)
{
    culet_profile_child();
    culet_large_remove_forked_samples();
}
