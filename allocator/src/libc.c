#define _GNU_SOURCE
#include "libc.h"

#include <dlfcn.h>

#ifdef __GLIBC__
#include <gnu/lib-names.h>

void *culet_libc_function(const char *name)
{
    void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

    return libc ? dlsym(libc, name) : NULL;
}

/* glibc exports its allocator under these names too; its dlsym could allocate and recurse. */
extern void *__libc_malloc(size_t bytes);
extern void __libc_free(void *block);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void culet_libc_setup(void)
{
}

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

size_t culet_libc_malloc_usable_size(void *block)
{
    static size_t (*next)(void *);

    if (!next)
        next = (size_t(*)(void *))culet_libc_function("malloc_usable_size");
    return next(block);
}

#else

void *culet_libc_function(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* musl exports its allocator under the standard names only; its dlsym and its loader use it directly. Its calloc and
 * memalign call malloc and aligned_alloc by name, so these come back here and are passed on. */
static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    size_t (*malloc_usable_size)(void *);
} next;

void culet_libc_setup(void)
{
    next.malloc = (void *(*)(size_t))culet_libc_function("malloc");
    next.free = (void (*)(void *))culet_libc_function("free");
    next.calloc = (void *(*)(size_t, size_t))culet_libc_function("calloc");
    next.realloc = (void *(*)(void *, size_t))culet_libc_function("realloc");
    next.aligned_alloc = (void *(*)(size_t, size_t))culet_libc_function("aligned_alloc");
    next.malloc_usable_size = (size_t(*)(void *))culet_libc_function("malloc_usable_size");
}

void *culet_libc_malloc(size_t bytes)
{
    return next.malloc(bytes);
}

void culet_libc_free(void *block)
{
    next.free(block);
}

void *culet_libc_calloc(size_t count, size_t bytes)
{
    return next.calloc(count, bytes);
}

void *culet_libc_realloc(void *block, size_t bytes)
{
    return next.realloc(block, bytes);
}

void *culet_libc_memalign(size_t alignment, size_t bytes)
{
    return next.aligned_alloc(alignment, bytes);
}

size_t culet_libc_malloc_usable_size(void *block)
{
    return next.malloc_usable_size(block);
}

#endif
