/* libc.h - libc's own allocator, which serves while culet is dormant. */
#ifndef CULET_LIBC_H
#define CULET_LIBC_H

#include <stddef.h>

/* glibc exports its allocator under these names too; dlsym could allocate and recurse. */
extern void *__libc_malloc(size_t bytes);
extern void __libc_free(void *block);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
size_t culet_libc_malloc_usable_size(void *block);

/* The next symbol: the definition of a function after this library's. NULL if there is none. */
void *culet_libc_next(const char *name);

#endif
