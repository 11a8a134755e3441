#include "wakeup.h"

#include "os.h"

_Atomic uint32_t culet_scavenger_state;
_Atomic bool culet_wakeup_large;

void culet_wakeup_send(void)
{
    uint32_t asleep = CULET_SCAVENGER_ASLEEP;

    if (atomic_compare_exchange_strong(&culet_scavenger_state, &asleep, CULET_SCAVENGER_AWAKE))
        culet_os_wake(&culet_scavenger_state, 1);
}

void culet_wakeup_request_scavenger(void)
{
    uint32_t none = CULET_SCAVENGER_NONE;

    atomic_compare_exchange_strong(&culet_scavenger_state, &none, CULET_SCAVENGER_REQUESTED);
}

void culet_wakeup_note_large(void)
{
    atomic_store_explicit(&culet_wakeup_large, true, memory_order_relaxed);
    culet_wakeup_request_scavenger();
}

void culet_wakeup_wait(bool (*anything)(void))
{
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_ASLEEP);
    /* culet_wakeup_notify loads the state after its stores without a fence: the barrier here stands for it. Where the
     * kernel has none, wait much longer than any processor delays a store. */
    if (!culet_os_barrier())
        culet_os_pause(10000);
    if (anything())
        culet_wakeup_send();
    while (atomic_load(&culet_scavenger_state) == CULET_SCAVENGER_ASLEEP)
        culet_os_wait(&culet_scavenger_state, CULET_SCAVENGER_ASLEEP, 0);
}

void culet_wakeup_reset(void)
{
    if (atomic_load(&culet_scavenger_state) != CULET_SCAVENGER_UNAVAILABLE)
        atomic_store(&culet_scavenger_state,
                     culet_wakeup_heap_large() ? CULET_SCAVENGER_REQUESTED : CULET_SCAVENGER_NONE);
}
