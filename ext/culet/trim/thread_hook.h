/* trim/thread_hook.h - runs a function once in each Ruby thread, at the thread's next allocation of an object. */
#pragma once

/* Runs during an allocation: it must not allocate objects, raise or call Ruby. */
typedef void culet_thread_hook(void);

/* Once, not during GC. May raise. */
void culet_thread_hook_prepare(culet_thread_hook *hook);

/* From now on each thread of the main Ractor, except the calling one, runs the hook once. Allocations are slower while
 * the hook is enabled. In a Ruby thread, not during GC; no effect in other Ractors. May raise. */
void culet_thread_hook_enable(void);

/* Threads that have not run the hook are skipped. In a Ruby thread, not during GC. May raise. */
void culet_thread_hook_disable(void);

/* Whether the hook is enabled. */
int culet_thread_hook_enabled(void);
