/* stack.h - returns the unused part of the main thread's stack to the kernel.
 *
 * Ruby reserves its main thread's stack by one alloca of all of it (reserve_stack in CRuby's thread_pthread.c). Built
 * with -fstack-clash-protection, as distributions build it now, that touches every page: 8 MiB resident in each Ruby
 * process. Below the stack pointer and its red zone of 128 bytes the stack is unused, so the main thread returns that
 * part: once, when the heap gets its second segment, and in malloc_trim. In Ruby only: another program may keep
 * coroutine stacks inside its main thread's, below the stack pointer. */
#pragma once

#include "reclaim_policy.h"
#include "types.h"

extern _Atomic bool culet_stack_requested;

/* On the main thread, at its start. */
void culet_stack_setup(void);

/* Has the main thread's next slow-path request trim its stack; the first call only. */
void culet_stack_request(void);

/* Returns the unused part, if this is the main thread of a Ruby program. */
void culet_stack_trim(void);

/* Returns the range below the caller's frame and CULET_STACK_MARGIN, if that is on the main thread's stack. The bytes
 * of the range, resident or not; 0 elsewhere, or if the kernel does not tell. */
size_t culet_stack_release(void);

/* After a request for memory, outside of all locks. */
static inline void culet_stack_check(void)
{
    if (CULET_UNLIKELY(atomic_load_explicit(&culet_stack_requested, memory_order_relaxed)))
        culet_stack_trim();
}
