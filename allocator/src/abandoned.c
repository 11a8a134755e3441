#include "abandoned.h"

#include "lock.h"
#include "os.h"

/* The largest kernel page. */
#define KERNEL_PAGE_MAX ((size_t)64 << 10)

static _Atomic uint32_t none = 1;                /* of a process that has had one thread only */
static unsigned char wiped[2 * KERNEL_PAGE_MAX]; /* has one whole kernel page to wipe; the rest is never touched */

_Atomic(_Atomic uint32_t *) culet_abandoned_mark = &none;

bool culet_abandoned_confirm(void)
{
    _Atomic uint32_t *mark;
    bool set;

    /* A signal handler may have forked between the caller's two loads: the child that goes on has another mark, and the
     * kernel has wiped the one that was loaded. */
    do {
        mark = atomic_load_explicit(&culet_abandoned_mark, memory_order_relaxed);
        set = atomic_load_explicit(mark, memory_order_relaxed);
    } while (mark != atomic_load_explicit(&culet_abandoned_mark, memory_order_relaxed));
    if (set)
        return false;
    if (culet_lock_forking())
        return false;
    /* Another thread of the parent was forking; no thread of this child may be taken for it. */
    culet_lock_fork_end();
    return true;
}

void culet_abandoned_watch(void)
{
    static _Atomic bool refused;
    size_t page = culet_os_page_bytes();
    _Atomic uint32_t *mark = (_Atomic uint32_t *)(((uintptr_t)wiped + page - 1) & ~(page - 1));

    if (atomic_load(&culet_abandoned_mark) == mark || atomic_load_explicit(&refused, memory_order_relaxed))
        return;
    if (page > KERNEL_PAGE_MAX || !culet_os_wipe_on_fork(mark, page)) {
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
