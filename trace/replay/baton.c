#define _GNU_SOURCE
#include "baton.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A turn often comes back at once; a sleep and a wake-up cost some 5 us. */
#define SPINS 200

void culet_baton_wait(struct culet_baton *baton)
{
    for (int i = 0; i < SPINS; i++)
        if (atomic_load(&baton->turn))
            break;
    while (!atomic_load(&baton->turn)) {
        atomic_store(&baton->asleep, 1);
        if (!atomic_load(&baton->turn))
            syscall(SYS_futex, &baton->turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        atomic_store(&baton->asleep, 0);
    }
    atomic_store(&baton->turn, 0);
}

void culet_baton_pass(struct culet_baton *baton)
{
    atomic_store(&baton->turn, 1);
    if (atomic_load(&baton->asleep))
        syscall(SYS_futex, &baton->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
