#include "bell.h"

#include "os.h"

_Atomic uint32_t culet_bell;

void culet_bell_wake(void)
{
    uint32_t asleep = CULET_BELL_ASLEEP;

    if (atomic_compare_exchange_strong(&culet_bell, &asleep, CULET_BELL_AWAKE))
        culet_os_wake(&culet_bell);
}

void culet_bell_want(void)
{
    uint32_t none = CULET_BELL_NONE;

    atomic_compare_exchange_strong(&culet_bell, &none, CULET_BELL_WANTED);
}

void culet_bell_sleep(bool (*anything)(void))
{
    atomic_store(&culet_bell, CULET_BELL_ASLEEP);
    /* Who rings looks at the bell after changing its figures, without a fence: that is here. Where the kernel has none,
     * wait far longer than any processor holds a store back. */
    if (!culet_os_barrier())
        culet_os_pause(10000);
    if (anything())
        culet_bell_wake();
    while (atomic_load(&culet_bell) == CULET_BELL_ASLEEP)
        culet_os_wait(&culet_bell, CULET_BELL_ASLEEP);
}

void culet_bell_reset(void)
{
    uint32_t state = atomic_load(&culet_bell);

    if (state != CULET_BELL_NONE && state != CULET_BELL_NEVER)
        atomic_store(&culet_bell, CULET_BELL_WANTED);
}
