#define _GNU_SOURCE
#include "libc.h"

#include <dlfcn.h>

/* glibc exports its allocator under these names too; dlsym could allocate and recurse. */
extern void *__libc_malloc(size_t bytes);
extern void __libc_free(void *block);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *culet_libc_malloc(size_t bytes)
{
    return __libc_malloc(bytes);
}

void culet_libc_free(void *block)
{
    __libc_free(block);
}

void *culet_libc_calloc(size_t count, size_t bytes)
{
    return __libc_calloc(count, bytes);
}

void *culet_libc_realloc(void *block, size_t bytes)
{
    return __libc_realloc(block, bytes);
}

void *culet_libc_memalign(size_t alignment, size_t bytes)
{
    return __libc_memalign(alignment, bytes);
}

void *culet_libc_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

size_t culet_libc_malloc_usable_size(void *block)
{
    static size_t (*next)(void *);

    if (!next)
        next = (size_t(*)(void *))culet_libc_next("malloc_usable_size");
    return next(block);
}
