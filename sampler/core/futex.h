/* futex.h - a lock that works inside malloc and after a fork. 0 free, 1 held, 2 held with waiters. */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct culet_futex {
    _Atomic uint32_t state;
};

static inline void culet_futex_lock(struct culet_futex *lock)
{
    uint32_t expected = 0;
    int error = errno;

    if (atomic_compare_exchange_strong_explicit(&lock->state, &expected, 1, memory_order_acquire, memory_order_relaxed))
        return;
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire))
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = error;
}

static inline void culet_futex_unlock(struct culet_futex *lock)
{
    int error = errno;

    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = error;
}

/* In a forked child: the lock is free, whoever held it. */
static inline void culet_futex_reset(struct culet_futex *lock)
{
    atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
}
