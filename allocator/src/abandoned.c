#include "abandoned.h"

#include "lock.h"
#include "os.h"

/* The longest page of a kernel's. */
#define PAGE_MOST ((size_t)64 << 10)

static _Atomic uint32_t none = 1;         /* of a process that has had one thread only */
static unsigned char room[2 * PAGE_MOST]; /* one whole page of it is wiped; the rest is never touched */

_Atomic(_Atomic uint32_t *) culet_abandoned_mark = &none;

bool culet_abandoned_confirm(void)
{
    if (!atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire))
        return true;
    if (culet_lock_forking())
        return false;
    /* Another thread of the parent's was forking, and no thread here is to be taken for it. */
    culet_lock_fork_end();
    return true;
}

void culet_abandoned_watch(void)
{
    static _Atomic bool refused;
    size_t page = culet_os_page_bytes();
    _Atomic uint32_t *mark = (_Atomic uint32_t *)(((uintptr_t)room + page - 1) & ~(page - 1));

    if (atomic_load(&culet_abandoned_mark) == mark || atomic_load_explicit(&refused, memory_order_relaxed))
        return;
    if (page > PAGE_MOST || !culet_os_wipe_on_fork(mark, page)) {
        atomic_store_explicit(&refused, true, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(mark, 1, memory_order_relaxed);
    atomic_store(&culet_abandoned_mark, mark);
}

void culet_abandoned_reset(void)
{
    atomic_store(&culet_abandoned_mark, &none);
}
