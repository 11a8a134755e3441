/* common/release.h - returns free memory to the kernel, by the active malloc's own call.
 *
 * The call is looked up at run time; the extension is not linked against an allocator. */
#pragma once

#include <stddef.h>

struct culet_release {
    const char *allocator; /* as Culet.allocator names it */
    const char *call;      /* the function's name for reports; NULL: there is none */
    const char *why_not;   /* why no memory can be returned, or NULL */
    int in_ruby_threads;   /* the call acts on the calling thread's heap and must not be interrupted by fork */
};

/* Looks up the call, once, before the functions below. Not during GC. */
void culet_release_find(void);

/* The result of the look-up. */
const struct culet_release *culet_release_found(void);

/* Returns the free memory of all threads, as far as the allocator can. The result shows in the process's resident
 * bytes. Without a call it does nothing. Any thread, with or without the GVL (but see in_ruby_threads); not in a signal
 * handler. */
void culet_release_memory(void);

/* How many bytes culet_release_memory would return, if the allocator counts them cheaply; else SIZE_MAX. */
size_t culet_release_estimate(void);
