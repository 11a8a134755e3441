/*
 * feature_index/plt_hook.h - the slot through which a loaded object calls a function of another one.
 */
#ifndef CULET_FEATURE_INDEX_PLT_HOOK_H
#define CULET_FEATURE_INDEX_PLT_HOOK_H

typedef void culet_function(void);

/*
 * Has the object that contains an address call another function wherever it calls the one of that name. Other objects are
 * left as they are; so is a slot that leads to neither the object itself (where it has not been called yet) nor
 * `original`: somebody else has changed it.
 *
 * inside:      an address in the object, a function of it say
 * name:        of the function
 * original:    what the name stands for by rights
 * replacement: what to call instead; it must not call through that slot
 *
 * Returns how many slots were changed, 0 where there is none or it may not be written.
 */
int culet_plt_hook(const void *inside, const char *name, culet_function *original, culet_function *replacement);

#endif
