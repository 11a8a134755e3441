/* trim/thread_hook.h - runs a function once in each Ruby thread, at the thread's next allocation of an object. */
#pragma once

/* Runs during an allocation: it must not allocate objects, raise or call Ruby. */
typedef void culet_thread_hook(void);

/* Initialises the hook. Once, not during GC. May raise. */
void culet_thread_hook_prepare(culet_thread_hook *hook);

/* Enables the hook: each thread of the main Ractor, except the calling one, runs it once. Allocations are slower while
 * the hook is enabled. In a Ruby thread, not during GC; no effect in other Ractors. May raise. */
void culet_thread_hook_enable(void);

/* Disables the hook. Threads that have not run it are skipped. In a Ruby thread, not during GC. May raise. */
void culet_thread_hook_disable(void);

/* Whether the hook is enabled. */
int culet_thread_hook_enabled(void);
