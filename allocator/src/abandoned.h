/* abandoned.h - forked children that ran no fork handlers.
 *
 * fork(3) runs the heap's handlers; a raw fork or clone system call, and glibc's _Fork, do not. Such a child has a copy
 * of the heap as the other threads left it, with locks that nobody will release. It is abandoned: it takes no lock of
 * the heap, uses up the current and recent units of its thread's arena, gets everything else from libc's allocator, which
 * is unused and so at rest, and never reuses what it frees of the old heap.
 *
 * The kernel marks such children: a page with MADV_WIPEONFORK (Linux 4.14) reads as zero in every child. A child that
 * shares its parent's memory, as after vfork, finds it unchanged. A process with one thread leaves nothing half
 * changed, and has no such page. */
#pragma once

#include "types.h"

/* Zero in a forked child, if its parent has had a second thread. */
extern _Atomic(_Atomic uint32_t *) culet_abandoned_mark;

/* A mark was zero: whether this child is abandoned, and not on its way to its fork handlers, or behind them. */
bool culet_abandoned_confirm(void);

static inline bool culet_abandoned(void)
{
    _Atomic uint32_t *mark = atomic_load_explicit(&culet_abandoned_mark, memory_order_acquire);
    return CULET_UNLIKELY(!atomic_load_explicit(mark, memory_order_relaxed)) && culet_abandoned_confirm();
}

/* A second thread is about to exist. Any thread may call it, any number of times. */
void culet_abandoned_watch(void);

/* By the fork handler of a child, which is not abandoned. */
void culet_abandoned_reset(void);
