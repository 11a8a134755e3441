/* feature_index/plt_hook.h - redirects the calls that a loaded object makes to a function of another object. */
#pragma once

typedef void culet_function(void);

/* Makes the object that contains an address call `replacement` instead of the function with a name, by changing the
 * object's PLT entries. Other objects are unaffected. An entry is left alone if it leads neither to `original` nor, as
 * before the first call, into the object itself: another library has hooked it.
 *
 * inside:      an address in the object, such as one of its functions
 * original:    what the name resolves to
 * replacement: must not call through the changed entry
 *
 * Returns how many entries were changed; 0 if there are none or they cannot be written. */
int culet_plt_hook(const void *inside, const char *name, culet_function *original, culet_function *replacement);
