#include "orphan.h"

#include "lock.h"
#include "os.h"

static _Atomic uint32_t none = 1;              /* of a process that has had one thread only */
static _Atomic(_Atomic uint32_t *) page;       /* once mapped it is kept, by children too */

_Atomic(_Atomic uint32_t *) culet_orphan_mark = &none;

bool culet_orphan_wiped(void)
{
    if (!atomic_load_explicit(&culet_lock_held_for_fork, memory_order_acquire))
        return true;
    if (culet_lock_forking())
        return false;
    /* Another thread of the parent's was forking, and no thread here is to be taken for it. */
    culet_lock_fork_end();
    return true;
}

static _Atomic uint32_t *map_page(void)
{
    size_t bytes = culet_os_page();
    _Atomic uint32_t *mapped = culet_os_map(bytes), *first = NULL;

    if (!mapped)
        return NULL;
    if (culet_os_wipe_on_fork(mapped, bytes) && atomic_compare_exchange_strong(&page, &first, mapped))
        return mapped;
    culet_os_unmap(mapped, bytes);
    return first;
}

void culet_orphan_watch(void)
{
    _Atomic uint32_t *mark = atomic_load(&page);

    if (atomic_load(&culet_orphan_mark) != &none || (!mark && !(mark = map_page())))
        return;
    atomic_store_explicit(mark, 1, memory_order_relaxed);
    atomic_store(&culet_orphan_mark, mark);
}

void culet_orphan_reset(void)
{
    atomic_store(&culet_orphan_mark, &none);
}
