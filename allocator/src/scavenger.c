#define _GNU_SOURCE
#include "scavenger.h"

#include "abandoned.h"
#include "checked.h"
#include "loader.h"
#include "lock.h"
#include "os.h"
#include "pages.h"
#include "program.h"
#include "purge.h"
#include "reclaim_policy.h"
#include "thread.h"

#include <errno.h>
#include <sys/prctl.h>

static size_t pages_idle(bool since)
{
    culet_lock(&culet_pages_lock);
    size_t pages = culet_pages_idle(since);
    culet_unlock(&culet_pages_lock);
    return pages <= CULET_IDLE_PAGES_MIN ? 0 : pages - CULET_IDLE_PAGES_MIN;
}

static bool anything_idle(void)
{
    return culet_purge_anything_used() || culet_checked_keeps_pages() || pages_idle(false) != 0;
}

static void return_idle_pages(void)
{
    size_t idle = pages_idle(true);

    if (!idle)
        return;
    culet_lock(&culet_pages_lock);
    size_t dirty = culet_pages_stats().dirty + culet_pages_stats().huge_cached;
    culet_unlock(&culet_pages_lock);
    culet_pages_purge_unlocked(dirty > idle ? dirty - idle : 0);
}

static void *scavenge(void *unused)
{
    struct culet_purged last = {0};
    bool left = true;

    prctl(PR_SET_NAME, "culet");
    for (;;) {
        while (left || anything_idle()) {
            culet_lock(&culet_pages_lock);
            culet_pages_begin_interval();
            culet_unlock(&culet_pages_lock);
            culet_os_pause(culet_reclaim_interval(culet_settings.decay_ms, last.visits) * 1000);
            left = culet_checked_decay();
            last = culet_purge(true);
            left |= last.left;
            return_idle_pages();
        }
        culet_wakeup_wait(anything_idle);
        left = true;
    }
    return unused;
}

void culet_scavenger_start(const void *caller)
{
    uint32_t requested = CULET_SCAVENGER_REQUESTED;
    int saved = errno;

    /* Not in the middle of a fork: it would wait for the locks, and the child would not have it. */
    if (atomic_load(&culet_lock_held_for_fork) || culet_loader_busy(caller) ||
        !atomic_compare_exchange_strong(&culet_scavenger_state, &requested, CULET_SCAVENGER_STARTING))
        return;
    culet_abandoned_watch();
    bool done = culet_thread_start(scavenge);
    uint32_t starting = CULET_SCAVENGER_STARTING;
    atomic_compare_exchange_strong(&culet_scavenger_state, &starting,
                                   done ? CULET_SCAVENGER_AWAKE : CULET_SCAVENGER_UNAVAILABLE);
    errno = saved;
}
