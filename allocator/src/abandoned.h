/* abandoned.h - a child of a fork that ran no handlers.
 *
 * fork(3) runs the heap's handlers; a raw fork or clone system call, and glibc's _Fork, do not. Such a child has a copy of
 * the heap in whatever state the other threads had it, and locks that nobody there will ever release. The child is an
 * orphan: it takes no lock of the heap. What its thread has claimed it still hands out; for the rest libc's allocator
 * serves it, which nobody has used, and what it frees of the old heap is not used again.
 *
 * The kernel tells orphans: a page that it wipes in every child (MADV_WIPEONFORK, Linux 4.14). A child that shares its
 * parent's memory, as after vfork, finds it unchanged. A process with one thread leaves nothing half done in a child,
 * and has no such page. */
#ifndef CULET_ABANDONED_H
#define CULET_ABANDONED_H

#include "types.h"

/* Zero in a forked child, once its parent has had a second thread. */
extern _Atomic(_Atomic uint32_t *) culet_abandoned_mark;

/* The mark is gone: whether this is a child without handlers, not one that is on its way to its handlers. */
bool culet_abandoned_confirm(void);

static inline bool culet_abandoned(void)
{
    _Atomic uint32_t *mark = atomic_load_explicit(&culet_abandoned_mark, memory_order_acquire);
    return CULET_UNLIKELY(!atomic_load_explicit(mark, memory_order_relaxed)) && culet_abandoned_confirm();
}

/* There is about to be a second thread. Any thread may call it, any number of times. */
void culet_abandoned_watch(void);

/* By the handler of a forked child, which is no orphan. */
void culet_abandoned_reset(void);

#endif
