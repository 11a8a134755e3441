/* common/sleeper.h - a native thread that sleeps until it is woken or a time has passed. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/thread.h"

#define CULET_UNTIL_WOKEN UINT64_MAX

enum culet_sleeper_state { CULET_NO_THREAD, CULET_STARTING, CULET_RUNNING };

/* All 0: there is no thread. */
struct culet_sleeper {
    pthread_t thread;
    _Atomic int state;
    _Atomic bool ended;
    _Atomic uint32_t wakeups; /* futex: incremented to wake the thread */
};

/* Whether the caller is the one to start the thread: there is none, and nobody starts it. Then `start` has to follow. */
static inline bool culet_sleeper_claim(struct culet_sleeper *sleeper)
{
    int none = CULET_NO_THREAD;

    return atomic_compare_exchange_strong(&sleeper->state, &none, CULET_STARTING);
}

/* Starts it as culet_thread_start does. Before a second start `ended` has to be cleared. Returns 0 or an errno. */
static inline int culet_sleeper_start(struct culet_sleeper *sleeper, void *(*function)(void *), const sigset_t *blocked)
{
    int error = culet_thread_start(&sleeper->thread, function, blocked);

    atomic_store(&sleeper->state, error == 0 ? CULET_RUNNING : CULET_NO_THREAD);
    return error;
}

static inline bool culet_sleeper_runs(const struct culet_sleeper *sleeper)
{
    return atomic_load(&sleeper->state) == CULET_RUNNING;
}

/* Any thread; also inside of malloc. */
static inline void culet_sleeper_wake(struct culet_sleeper *sleeper)
{
    atomic_fetch_add(&sleeper->wakeups, 1);
    (void)syscall(SYS_futex, &sleeper->wakeups, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Ends it; returns when it has ended, and whether there was one. */
static inline bool culet_sleeper_end(struct culet_sleeper *sleeper)
{
    atomic_store(&sleeper->ended, true);
    if (atomic_exchange(&sleeper->state, CULET_NO_THREAD) != CULET_RUNNING)
        return false;
    culet_sleeper_wake(sleeper);
    pthread_join(sleeper->thread, NULL);
    return true;
}

/* In the thread: sleeps for so many nanoseconds, unless it was woken since `wakeups` had the value `seen`. It checks
 * everything again then, whatever ended the wait. */
static inline void culet_sleeper_sleep(struct culet_sleeper *sleeper, uint32_t seen, uint64_t nanoseconds)
{
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};

    (void)syscall(SYS_futex, &sleeper->wakeups, FUTEX_WAIT_PRIVATE, seen,
                  nanoseconds == CULET_UNTIL_WOKEN ? NULL : &time, NULL, 0);
}

/* In a forked child: the thread is the parent's. Returns whether there was one. */
static inline bool culet_sleeper_forget(struct culet_sleeper *sleeper)
{
    return atomic_exchange(&sleeper->state, CULET_NO_THREAD) != CULET_NO_THREAD;
}
