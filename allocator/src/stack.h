/* stack.h - the part of the main thread's stack that is not in use.
 *
 * Ruby makes sure of its main thread's stack by one alloca of all of it (reserve_stack in CRuby's thread_pthread.c).
 * Where it is built with -fstack-clash-protection, as distributions build it now, that touches each page: 8 MiB
 * resident in every Ruby process from its start. What lies below the stack pointer belongs to nobody (but for the
 * red zone of 128 bytes), so the main thread gives it back: once, when the heap has grown beyond its first segment,
 * and in malloc_trim. In Ruby only: it has its fibers' stacks elsewhere, while other programs may have some inside of
 * the main thread's, whose stack pointer then says nothing of what lies below. */
#ifndef CULET_STACK_H
#define CULET_STACK_H

#include "types.h"

/* Kept below the stack pointer: what the next calls need. */
#define CULET_STACK_MARGIN ((size_t)128 << 10)

extern _Atomic bool culet_stack_requested;

/* From the main thread, at its start. */
void culet_stack_setup(void);

/* The main thread's next request looks after its stack; the first time that this is called. */
void culet_stack_request(void);

/* The main thread of a Ruby program gives back what it does not use of its stack; others do nothing. */
void culet_stack_trim(void);

/* Gives back what lies below the caller's frame and the margin, if the caller is on the main thread's stack.
 * Returns the bytes of that range, resident or not; 0 when the caller is elsewhere or the kernel does not tell. */
size_t culet_stack_release(void);

/* After a request for memory, outside of all locks. */
static inline void culet_stack_check(void)
{
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_stack_requested, memory_order_relaxed)))
        culet_stack_trim();
}

#endif
