/* memory_orders.h - the memory orders of the arenas (arena.h), the locks and the scavenger wake-up, by name.
 *
 * The code and the model of weakly ordered processors (test/unit/weak.c) both use these names. The model weakens each
 * order in turn and reports which are needed. */
#pragma once

#include <stdatomic.h>

/* Entering and leaving an arena. `busy` is stored before `arena` is loaded, in program order; the processor is held to
 * that order by membarrier on the other side. A thread that finds its arena has seen all of it: nobody else has used it
 * since the thread took it. */
#define CULET_ORDER_ENTER_BUSY memory_order_relaxed
#define CULET_ORDER_ENTER_ARENA memory_order_relaxed
#define CULET_ORDER_LEAVE_BUSY memory_order_release

/* Taking an arena over. A former holder that has left to hold another arena says so by that arena alone (HOLD), and the
 * taker sees it in its failed attempt to restore (RESTORE). */
#define CULET_ORDER_REVOKE memory_order_relaxed
#define CULET_ORDER_REVOKED_BUSY memory_order_acquire
#define CULET_ORDER_RESTORE memory_order_acquire
#define CULET_ORDER_HOLD memory_order_release

/* Frees by other threads: the unit's word, the slab's mask, the arena's stack. Taking the marks releases next_remote to
 * the thread that pushes the slab again. */
#define CULET_ORDER_FREE_REMOTE memory_order_release
#define CULET_ORDER_MARK_REMOTE memory_order_acq_rel
#define CULET_ORDER_PUSH_REMOTE memory_order_release
#define CULET_ORDER_COLLECT memory_order_acquire
#define CULET_ORDER_COLLECT_MARKS memory_order_acq_rel

/* Locks (lock.h). */
#define CULET_ORDER_LOCK memory_order_acquire
#define CULET_ORDER_UNLOCK memory_order_release
