#include "heap.h"

#include "abandoned.h"
#include "arena.h"
#include "checked.h"
#include "harden.h"
#include "inherited.h"
#include "libc.h"
#include "lock.h"
#include "meta.h"
#include "program.h"
#include "purge.h"
#include "scavenger.h"
#include "size_class.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

_Atomic uint8_t culet_heap_state_now;
static struct culet_lock setup_lock;

static size_t forks; /* [pages lock] */

/* ---- fork ----
 *
 * OUTSIDE: all locks are taken, so that the child's copy of the heap is consistent.
 *
 * From a signal handler that has interrupted this thread in the middle of the heap, the locks that other threads hold
 * cannot be waited for, since they may wait for this thread's. Parent and child go on in the middle when the handler
 * returns. ALONE: no other thread exists, so the child's copy is as good as the parent's, and nothing is done. INSIDE:
 * only locks that come after the thread's own in the order are taken, whose holders do not wait for it; the child is
 * abandoned (abandoned.h), and a lock whose holder is gone is open. */

/* glibc 2.32 and later says whether the process has one thread only. */
extern char __libc_single_threaded __attribute__((weak));

enum fork_from { FORK_ABANDONED, FORK_OUTSIDE, FORK_ALONE, FORK_INSIDE };

/* The thread's fork. No handler runs, and forks as well, before it has ended. */
static _Thread_local struct {
    enum fork_from from;
    bool taken[3]; /* of `last_locks`, if INSIDE */
    sigset_t signals;
} forking __attribute__((tls_model("initial-exec")));

static bool nowhere(void)
{
    return false;
}

static void nothing(void)
{
}

static const struct culet_fork_hooks no_hooks = {nowhere, nothing, nothing, nothing};
static const struct culet_fork_hooks *outer = &no_hooks, *inner = &no_hooks;

void culet_heap_set_fork_hooks(const struct culet_fork_hooks *outer_hooks, const struct culet_fork_hooks *inner_hooks)
{
    outer = outer_hooks;
    inner = inner_hooks;
}

/* In this order, after all others but those of `inner`. */
static struct culet_lock *const last_locks[] = {&culet_pages_lock, &culet_meta_lock, &culet_checked_lock};

/* Whether the calling thread, in a handler of signals, has interrupted itself in the middle of the heap. */
static bool inside_heap(void)
{
    for (unsigned i = 0; i < 3; i++)
        if (culet_lock_mine(last_locks[i]))
            return true;
    return culet_pages_returning || culet_lock_mine(&culet_purge_lock) || culet_arena_inside() || outer->inside() ||
           inner->inside();
}

/* The directory has an entry, and a link, for each thread. */
static bool alone(void)
{
    struct stat tasks;
    int saved = errno;
    bool one = stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;

    errno = saved;
    return one || (&__libc_single_threaded && __libc_single_threaded);
}

static void block_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &forking.signals);
}

static void restore_signals(void)
{
    pthread_sigmask(SIG_SETMASK, &forking.signals, NULL);
}

static void take_last_locks(void)
{
    bool mine = inner->inside();

    for (unsigned i = 3; i-- > 0;) {
        mine |= culet_lock_mine(last_locks[i]);
        forking.taken[i] = !mine;
    }
    for (unsigned i = 0; i < 3; i++)
        if (forking.taken[i])
            culet_lock(last_locks[i]);
}

static void release_last_locks(void)
{
    for (unsigned i = 3; i-- > 0;)
        if (forking.taken[i])
            culet_unlock(last_locks[i]);
}

/* glibc's lock on the list of open streams: a flush of all streams holds it while their functions run, which may
 * allocate, and glibc's fork takes it after our handler. So ours takes it before the heap's locks. The lock is
 * recursive. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));
static bool streams_held;

static void before_fork_outside(void)
{
    outer->before();
    bool streams =
        !(&__libc_single_threaded && __libc_single_threaded) && _IO_list_lock && _IO_list_unlock && _IO_list_resetlock;
    if (streams)
        _IO_list_lock();
    /* Registers a new thread, which may allocate, and wait for the lock when memory is out. */
    culet_arena_leave(culet_arena_enter());
    culet_lock(&culet_purge_lock);
    culet_arena_freeze();
    streams_held = streams;
    for (unsigned i = 0; i < 3; i++)
        culet_lock(last_locks[i]);
    forks++;
    inner->before();
    culet_lock_fork_begin();
}

static void before_fork(void)
{
    forking.from = FORK_ABANDONED;
    if (culet_abandoned())
        return;
    enum fork_from from = !inside_heap() ? FORK_OUTSIDE : alone() ? FORK_ALONE : FORK_INSIDE;
    block_signals();
    forking.from = from;
    if (from == FORK_OUTSIDE) {
        before_fork_outside();
    } else if (from == FORK_INSIDE) {
        culet_abandoned_watch();
        take_last_locks();
    }
}

static void after_fork_outside_in_parent(void)
{
    bool streams = streams_held;

    culet_lock_fork_end();
    inner->after_in_parent();
    for (unsigned i = 3; i-- > 0;)
        culet_unlock(last_locks[i]);
    culet_arena_unfreeze();
    culet_unlock(&culet_purge_lock);
    if (streams)
        _IO_list_unlock();
    outer->after_in_parent();
}

static void after_fork_in_parent(void)
{
    if (forking.from == FORK_ABANDONED)
        return;
    if (forking.from == FORK_OUTSIDE)
        after_fork_outside_in_parent();
    else if (forking.from == FORK_INSIDE)
        release_last_locks();
    restore_signals();
}

static void after_fork_outside_in_child(void)
{
    culet_abandoned_reset();
    culet_lock_fork_end();
    inner->after_in_child();
    for (unsigned i = 3; i-- > 0;)
        culet_lock_reset(last_locks[i]);
    culet_harden_reseed();
    culet_inherited_after_fork();
    culet_lock_reset(&culet_purge_lock);
    bool others = culet_arena_reset();
    culet_large_finish_frees();
    culet_wakeup_reset();
    /* The scavenger frees, too, when it drains the quarantine. */
    if (others || culet_harden_level)
        culet_bin_reconcile();
    /* glibc has done so itself, unless it considered the process single-threaded. */
    if (streams_held)
        _IO_list_resetlock();
    outer->after_in_child();
}

static void after_fork_in_child(void)
{
    if (forking.from == FORK_ABANDONED)
        return;
    if (forking.from == FORK_OUTSIDE) {
        after_fork_outside_in_child();
    } else if (forking.from == FORK_ALONE) {
        culet_abandoned_reset();
        culet_harden_reseed();
    } else {
        release_last_locks();
        atomic_store_explicit(&culet_lock_orphans, true, memory_order_relaxed);
    }
    restore_signals();
}

/* pthread_atfork may allocate, which the EARLY heap serves. Registered first, the handlers run innermost. */
static enum culet_state set_up(void)
{
    culet_libc_setup();
    if (culet_program_dormant())
        return CULET_DORMANT;
    culet_harden_setup(culet_settings.hardening);
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
    culet_pages_purge_unlocked(keep_bytes >> CULET_PAGE_SHIFT);
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
