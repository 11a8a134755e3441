#define _GNU_SOURCE
#include "lock.h"

#include "os.h"

#include <pthread.h>

/* Rounds before sleeping: a bin is held for well under a microsecond. */
#define SPINS 128

_Thread_local uint32_t culet_lock_thread;
_Atomic bool culet_lock_held_for_fork;
_Atomic bool culet_lock_orphans;
static _Atomic uintptr_t forking_thread;

void culet_lock_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool culet_lock_held_by_caller(void)
{
    return atomic_load_explicit(&forking_thread, memory_order_relaxed) == (uintptr_t)pthread_self();
}

uint32_t culet_lock_set_thread(void)
{
    static _Atomic uint32_t numbers;

    return culet_lock_thread = atomic_fetch_add_explicit(&numbers, 4, memory_order_relaxed) + 4;
}

/* Marks a held lock as waited for, and sleeps until it changes. Whether the lock has been taken instead, since it was free:
 * others may wait as well. */
static bool take_or_sleep(struct culet_lock *lock)
{
    uint32_t seen = atomic_load_explicit(&lock->state, memory_order_relaxed);
    uint32_t next = (seen ? seen & ~3u : culet_lock_self()) | CULET_LOCK_WAITERS;

    if (seen != next &&
        !atomic_compare_exchange_strong_explicit(&lock->state, &seen, next, CULET_ORDER_LOCK, memory_order_relaxed))
        return false;
    if (!seen)
        return true;
    culet_os_wait(&lock->state, next, 0);
    return false;
}

void culet_lock_wait(struct culet_lock *lock)
{
    if (culet_lock_forking())
        return;
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 && culet_lock_try(lock))
            return;
        culet_lock_relax();
    }
    while (!atomic_load_explicit(&culet_lock_orphans, memory_order_relaxed) && !take_or_sleep(lock))
        ;
}

void culet_lock_wake(struct culet_lock *lock)
{
    culet_os_wake(&lock->state, 1);
}

void culet_lock_fork_begin(void)
{
    atomic_store_explicit(&forking_thread, (uintptr_t)pthread_self(), memory_order_relaxed);
    atomic_store_explicit(&culet_lock_held_for_fork, true, memory_order_release);
}

void culet_lock_fork_end(void)
{
    atomic_store_explicit(&culet_lock_held_for_fork, false, memory_order_release);
}
