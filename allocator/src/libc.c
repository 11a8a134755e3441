#define _GNU_SOURCE
#include "libc.h"

#include <dlfcn.h>

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
