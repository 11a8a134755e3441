#define _GNU_SOURCE
#include "turn.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The turn often returns at once; sleeping and waking cost 5 us. */
#define SPINS 200

void culet_turn_wait(struct culet_turn *turn)
{
    for (int i = 0; i < SPINS; i++)
        if (atomic_load(&turn->granted))
            break;
    while (!atomic_load(&turn->granted)) {
        atomic_store(&turn->asleep, 1);
        if (!atomic_load(&turn->granted))
            syscall(SYS_futex, &turn->granted, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        atomic_store(&turn->asleep, 0);
    }
    atomic_store(&turn->granted, 0);
}

void culet_turn_grant(struct culet_turn *turn)
{
    atomic_store(&turn->granted, 1);
    if (atomic_load(&turn->asleep))
        syscall(SYS_futex, &turn->granted, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
