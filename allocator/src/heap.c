#include "heap.h"

#include "abandoned.h"
#include "arena.h"
#include "checked.h"
#include "harden.h"
#include "inherited.h"
#include "libc.h"
#include "lock.h"
#include "meta.h"
#include "profile_file.h"
#include "profiler.h"
#include "program.h"
#include "purge.h"
#include "scavenger.h"
#include "size_class.h"

#include <pthread.h>
#include <string.h>

_Atomic uint8_t culet_heap_state_now;
static struct culet_lock setup_lock;

static size_t forks; /* [pages lock] */

/* ---- fork: all locks are taken, so that the child's copy of the heap is consistent ---- */

/* glibc 2.32 and later says whether the process has one thread only. */
extern char __libc_single_threaded __attribute__((weak));
static bool forked_single_threaded;

/* glibc's lock on the list of open streams: a flush of all streams holds it while their functions run, which may
 * allocate, and glibc's fork takes it after our handler. So ours takes it before the heap's locks. The lock is
 * recursive. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));
static bool streams_held;

static void before_fork(void)
{
    if (culet_abandoned())
        return;
    culet_profile_file_before_fork();
    bool single_threaded = &__libc_single_threaded && __libc_single_threaded;
    bool streams = !single_threaded && _IO_list_lock && _IO_list_unlock && _IO_list_resetlock;
    if (streams)
        _IO_list_lock();
    /* Registers a new thread, which may allocate, and wait for the lock when memory is out. */
    culet_arena_leave(culet_arena_enter());
    culet_lock(&culet_purge_lock);
    culet_arena_freeze();
    forked_single_threaded = single_threaded;
    streams_held = streams;
    culet_lock(&culet_pages_lock);
    culet_lock(&culet_meta_lock);
    culet_lock(&culet_checked_lock);
    forks++;
    culet_profiler_before_fork();
    culet_lock_fork_begin();
}

static void after_fork_in_parent(void)
{
    if (culet_abandoned())
        return;
    bool streams = streams_held;
    culet_lock_fork_end();
    culet_profiler_after_fork_in_parent();
    culet_unlock(&culet_checked_lock);
    culet_unlock(&culet_meta_lock);
    culet_unlock(&culet_pages_lock);
    culet_arena_unfreeze();
    culet_unlock(&culet_purge_lock);
    if (streams)
        _IO_list_unlock();
    culet_profile_file_after_fork_in_parent();
}

static void after_fork_in_child(void)
{
    if (culet_abandoned())
        return;
    culet_abandoned_reset();
    culet_lock_fork_end();
    culet_profiler_after_fork_in_child();
    culet_lock_reset(&culet_checked_lock);
    culet_harden_reseed();
    culet_lock_reset(&culet_meta_lock);
    culet_lock_reset(&culet_pages_lock);
    culet_inherited_after_fork();
    culet_lock_reset(&culet_purge_lock);
    culet_arena_reset();
    culet_large_finish_frees();
    culet_wakeup_reset();
    if (!forked_single_threaded)
        culet_bin_reconcile();
    /* glibc has done so itself, unless it considered the process single-threaded. */
    if (streams_held)
        _IO_list_resetlock();
    culet_profile_file_after_fork_in_child();
}

/* pthread_atfork may allocate, which the EARLY heap serves. Registered first, the handlers run innermost. */
static enum culet_state set_up(void)
{
    culet_libc_setup();
    if (culet_program_dormant())
        return CULET_DORMANT;
    culet_harden_setup(culet_program_hardening());
    culet_checked_setup();
    culet_size_class_setup();
    culet_arena_setup(culet_purge_after_thread);
    atomic_store_explicit(&culet_heap_state_now, CULET_EARLY, memory_order_release);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return CULET_EARLY;
}

enum culet_state culet_heap_setup(void)
{
    static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
    enum culet_state state;

    if (inside)
        return CULET_EARLY;
    inside = true;
    culet_lock(&setup_lock);
    state = atomic_load_explicit(&culet_heap_state_now, memory_order_relaxed);
    if (state == CULET_UNINITIALIZED)
        state = set_up();
    if (state == CULET_EARLY && culet_program_mark())
        state = CULET_ACTIVE;
    atomic_store_explicit(&culet_heap_state_now, state, memory_order_release);
    culet_unlock(&setup_lock);
    inside = false;
    return state;
}

static size_t purged(void)
{
    culet_lock(&culet_pages_lock);
    size_t bytes = culet_pages_stats().purged_bytes;
    culet_unlock(&culet_pages_lock);
    return bytes;
}

size_t culet_heap_trim(size_t keep_bytes)
{
    size_t before = purged();

    culet_checked_drain();
    culet_purge(false);
    culet_scavenger_purge_pages(keep_bytes >> CULET_PAGE_SHIFT);
    return purged() - before;
}

size_t culet_heap_forks(void)
{
    culet_lock(&culet_pages_lock);
    size_t count = forks;
    culet_unlock(&culet_pages_lock);
    return count;
}

void culet_heap_check(void)
{
    culet_heap_state();
    culet_lock(&culet_purge_lock);
    culet_arena_freeze();
    culet_bin_check();
    culet_lock(&culet_pages_lock);
    culet_pages_check();
    culet_unlock(&culet_pages_lock);
    culet_arena_unfreeze();
    culet_unlock(&culet_purge_lock);
}
