/* memory_orders.h - the memory orders of the bias (bias.h), the locks and the scavenger wake-up, by name.
 *
 * The code and the model of weakly ordered processors (test/unit/weak.c) both use these names. The model weakens each
 * order in turn and reports which are needed. */
#ifndef CULET_MEMORY_ORDERS_H
#define CULET_MEMORY_ORDERS_H

#include <stdatomic.h>

/* Entering and leaving the heap. `busy` is stored before the biased thread is loaded, in program order; the processor
 * is held to that order by membarrier on the other side. */
#define CULET_ORDER_ENTER_BUSY memory_order_relaxed
#define CULET_ORDER_ENTER_BIASED memory_order_acquire
#define CULET_ORDER_LEAVE_BUSY memory_order_release

/* Entering while another thread is biased, or without a cache. */
#define CULET_ORDER_SLOW_BUSY memory_order_seq_cst
#define CULET_ORDER_SLOW_UNCACHED memory_order_seq_cst
#define CULET_ORDER_SLOW_BIASED memory_order_seq_cst
#define CULET_ORDER_LEAVE_UNCACHED memory_order_seq_cst

/* Changing the biased thread. */
#define CULET_ORDER_BEGIN_EXCLUSIVE memory_order_seq_cst
#define CULET_ORDER_WAIT memory_order_acquire
#define CULET_ORDER_END_EXCLUSIVE memory_order_seq_cst

/* `live` words, by every thread but the biased one. */
#define CULET_ORDER_FREE memory_order_acq_rel
#define CULET_ORDER_CLAIM memory_order_acq_rel
/* Reading `live` to find free blocks whose memory may be given away. */
#define CULET_ORDER_READ_LIVE memory_order_acquire

/* Locks (lock.h). */
#define CULET_ORDER_LOCK memory_order_acquire
#define CULET_ORDER_UNLOCK memory_order_release

#endif
