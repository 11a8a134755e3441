/* libc.h - libc's own allocator, which serves while culet is dormant.
 *
 * musl's loader and dlsym use musl's malloc directly, so nothing comes here from inside them. */
#pragma once

#include <stddef.h>

/* Finds libc's functions. Before the heap is set up, because an abandoned child must not wait for the loader's lock. */
void culet_libc_setup(void);

void *culet_libc_malloc(size_t bytes);
void culet_libc_free(void *block);
void *culet_libc_calloc(size_t count, size_t bytes);
void *culet_libc_realloc(void *block, size_t bytes);
void *culet_libc_memalign(size_t alignment, size_t bytes);
size_t culet_libc_malloc_usable_size(void *block);

/* libc's own function of that name, also where a library in between defines it, as in a program that is linked to
 * another allocator. NULL if there is none. */
void *culet_libc_function(const char *name);
