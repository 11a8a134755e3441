/* trim/thread_hook.h - has each of Ruby's threads do something once, at its next turn: when it allocates an object. */
#ifndef CULET_THREAD_HOOK_H
#define CULET_THREAD_HOOK_H

/* Done in the midst of an allocation of an object: nothing of Ruby's may be allocated, raised or called. */
typedef void culet_thread_hook(void);

/* To be called once, not inside a GC. May raise. */
void culet_thread_hook_prepare(culet_thread_hook *hook);

/*
 * From now on each thread of the main Ractor, but for the calling one, does it once. While this is so, each allocation of
 * an object costs somewhat more, hence it should be closed before long. In a Ruby thread, not inside a GC. May raise. In
 * other Ractors it does nothing.
 */
void culet_thread_hook_enable(void);

/* Whose turn has not come is left out. As above. */
void culet_thread_hook_disable(void);

/* Whether they are open. */
int culet_thread_hook_enabled(void);

#endif
