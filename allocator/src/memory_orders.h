/* memory_orders.h - the memory orders of the bias (bias.h), of the locks and of the scavenger's bell, by name.
 *
 * The code takes its orders from here, and so does the model that explores what weakly ordered processors make of them
 * (test/unit/weak.c): it weakens each in turn and tells which of them are needed. */
#ifndef CULET_MEMORY_ORDERS_H
#define CULET_MEMORY_ORDERS_H

#include <stdatomic.h>

/* Entering and leaving, by everybody: `busy` is stored before the biased thread is read, in the order of the program;
 * what makes the processor keep to that order is membarrier on the other side. */
#define CULET_ORDER_ENTER_BUSY memory_order_relaxed
#define CULET_ORDER_ENTER_BIASED memory_order_acquire
#define CULET_ORDER_LEAVE_BUSY memory_order_release

/* Entering while somebody else has the bias, or without a cache of one's own. */
#define CULET_ORDER_SLOW_BUSY memory_order_seq_cst
#define CULET_ORDER_SLOW_UNCACHED memory_order_seq_cst
#define CULET_ORDER_SLOW_BIASED memory_order_seq_cst
#define CULET_ORDER_LEAVE_UNCACHED memory_order_seq_cst

/* Changing the biased thread. */
#define CULET_ORDER_BEGIN_EXCLUSIVE memory_order_seq_cst
#define CULET_ORDER_WAIT memory_order_acquire
#define CULET_ORDER_END_EXCLUSIVE memory_order_seq_cst

/* `live` words, by everybody but the biased thread. */
#define CULET_ORDER_FREE memory_order_acq_rel
#define CULET_ORDER_CLAIM memory_order_acq_rel
/* Looking whether blocks are free, to give their memory away. */
#define CULET_ORDER_READ_LIVE memory_order_acquire

/* A lock (lock.h). */
#define CULET_ORDER_LOCK memory_order_acquire
#define CULET_ORDER_UNLOCK memory_order_release

#endif
