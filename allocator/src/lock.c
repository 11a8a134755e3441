#define _GNU_SOURCE
#include "lock.h"

#include "os.h"

#include <pthread.h>

/* Rounds before sleeping: a bin is held for well under a microsecond. */
#define SPINS 128

_Atomic bool culet_lock_held_for_fork;
static _Atomic uintptr_t forking_thread;

void culet_lock_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool culet_lock_forking(void)
{
    return atomic_load_explicit(&forking_thread, memory_order_relaxed) == (uintptr_t)pthread_self();
}

void culet_lock_wait(struct culet_lock *lock)
{
    if (atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire) && culet_lock_forking())
        return;
    for (int i = 0; i < SPINS; i++) {
        uint32_t free = 0;
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->state, &free, 1, CULET_ORDER_LOCK, memory_order_relaxed))
            return;
        culet_lock_relax();
    }
    while (atomic_exchange_explicit(&lock->state, 2, CULET_ORDER_LOCK) != 0)
        culet_os_wait(&lock->state, 2);
}

void culet_lock_wake(struct culet_lock *lock)
{
    culet_os_wake(&lock->state);
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
