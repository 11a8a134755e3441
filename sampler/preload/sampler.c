#define _GNU_SOURCE
#include "sampler.h"

#include "../core/futex.h"
#include "../core/host.h"
#include "../core/memory.h"
#include "../core/random.h"
#include "../core/samples.h"
#include "live.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

_Atomic uint32_t culet_sampler_profile;
_Thread_local struct culet_sampler_thread culet_sampler_thread;

static struct culet_futex lock; /* of the table; taken before the profile's */

/* 1; the kernel makes it 0 in a forked child, until the fork handlers have run there. A child without fork handlers
 * keeps 0: its parent's other threads may have held the locks. */
static _Atomic unsigned char *own_process;

/* Whether this thread may take the locks. A signal handler that interrupts their holder may not. */
static bool enter(void)
{
    struct culet_sampler_thread *thread = &culet_sampler_thread;

    if (thread->busy || !atomic_load_explicit(own_process, memory_order_relaxed))
        return false;
    thread->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (!thread->forking)
        culet_futex_lock(&lock);
    return true;
}

static void leave(void)
{
    if (!culet_sampler_thread.forking)
        culet_futex_unlock(&lock);
    atomic_signal_fence(memory_order_seq_cst);
    culet_sampler_thread.busy = false;
}

static void forget(uint32_t sample)
{
    if (sample)
        culet_profile_api.remove(sample);
}

/* ---- requests ---- */

/* A table that cannot grow forgets the sample: its free would not be seen. A former sample at the address was freed by
 * a function that the library does not see. */
static void keep(const void *block, uint32_t sample)
{
    uint32_t before = 0;

    if (!enter()) {
        forget(sample);
        return;
    }
    bool kept = culet_live_add(block, sample, &before);
    leave();
    forget(kept ? before : sample);
}

void culet_sampler_count(uint32_t profile, size_t bytes, void *block)
{
    struct culet_sampler_thread *thread = &culet_sampler_thread;

    if (thread->profile != profile) {
        thread->profile = profile;
        thread->distance = culet_profile_distance();
    }
    if (bytes < thread->distance) {
        thread->distance -= bytes;
        return;
    }
    thread->distance = culet_profile_distance();
    if (thread->busy || thread->forking || culet_profile_inside() ||
        !atomic_load_explicit(own_process, memory_order_relaxed))
        return;
    uint32_t sample = culet_host_add(block, bytes, culet_profile_weight(bytes));
    if (sample)
        keep(block, sample);
}

/* ---- frees ---- */

uint32_t culet_sampler_take(const void *block)
{
    uint32_t sample = 0;

    if (!block || !enter())
        return 0;
    sample = culet_live_remove(block);
    leave();
    return sample;
}

void culet_sampler_free(const void *block)
{
    forget(culet_sampler_take(block));
}

void culet_sampler_reallocated(const void *block, uint32_t sample, bool stays)
{
    if (stays)
        keep(block, sample);
    else
        forget(sample);
}

/* ---- start and end ---- */

static _Atomic uint32_t started; /* profiles so far */

static void begin(void)
{
    atomic_store_explicit(&culet_sampler_profile, atomic_fetch_add(&started, 1) + 1, memory_order_relaxed);
}

static void end(void)
{
    atomic_store_explicit(&culet_sampler_profile, 0, memory_order_relaxed);
}

/* ---- fork ---- */

static void before_fork(void)
{
    culet_futex_lock(&lock);
    culet_sampler_thread.forking = true;
    culet_profile_prepare();
}

static void after_fork_in_parent(void)
{
    culet_profile_parent();
    culet_sampler_thread.forking = false;
    culet_futex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    culet_profile_child();
    culet_sampler_thread.forking = false;
    culet_futex_reset(&lock);
    atomic_store_explicit(own_process, 1, memory_order_relaxed);
}

/* ---- the process ---- */

static const char *out = ""; /* the file of the stream at exit; "": none, NULL: its name is too long */

static bool set_up(void)
{
    own_process = culet_profile_map(getauxval(AT_PAGESZ));
    if (!own_process)
        return false;
    madvise((void *)own_process, getauxval(AT_PAGESZ), MADV_WIPEONFORK);
    atomic_store_explicit(own_process, 1, memory_order_relaxed);
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* The value of a variable in the environment of the program's start; NULL if it has none. libc has no environ yet. */
static char *value_of(char **environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* Whether this program is one that a Ruby program has started, and not Ruby itself: then it is not sampled, as on culet's
 * allocator. `culet profile` starts its command with 0 there; Ruby makes it 1. */
static bool inherited(char *mark, bool ruby)
{
    if (mark && strcmp(mark, "0") == 0 && ruby)
        *mark = '1';
    return mark && strcmp(mark, "1") == 0 && !ruby;
}

__attribute__((constructor)) static void loaded(int count, char **arguments, char **environment)
{
    const char *value = value_of(environment, "CULET_PROFILE");
    uint64_t bytes = value ? culet_host_parse(value) : 0;
    bool ruby = culet_host_ruby();

    (void)count, (void)arguments;
    if (inherited(value_of(environment, "CULET_INHERITED"), ruby))
        return;
    struct culet_profile_host host = {.started = begin, .stopped = end, .resident = culet_host_resident()};
    culet_host_setup(!ruby);
    culet_profile_set_host(&host);
    if (!set_up() || (bytes && !culet_profile_api.start(bytes))) {
        culet_host_complain("culet: no memory for the profile\n");
        return;
    }
    if (bytes && !ruby && !getauxval(AT_SECURE) && (value = value_of(environment, "CULET_PROFILE_OUT")))
        out = culet_host_keep_out(value);
}

__attribute__((destructor)) static void unloaded(void)
{
    if ((!out || *out) && atomic_load_explicit(own_process, memory_order_relaxed))
        culet_host_write_at_exit(out);
}
