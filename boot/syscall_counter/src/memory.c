/* memory.c - counts calls of the malloc family, and calls the next definition. */
#define _GNU_SOURCE
#include "../../../replay/interposer/next.h"
#include "counts.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

EXPORT void *malloc(size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, 1);
    return culet_count_block(culet_next.malloc(bytes), bytes);
}

/* Blocks allocated during the symbol look-up are not the allocator's. */
EXPORT void free(void *block)
{
    const char *end;

    if (block && !culet_early_owns(block, &end) && culet_next_ready())
        culet_next.free(block);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(total, 1);
    return culet_count_block(culet_next.calloc(count, bytes), total);
}

/* The size of an early block is unknown: copies as much as it can have. */
static void *leave_early(const void *block, const char *end, size_t bytes)
{
    size_t there = (size_t)(end - (const char *)block);
    void *got = malloc(bytes);

    return got ? memcpy(got, block, bytes < there ? bytes : there) : NULL;
}

EXPORT void *realloc(void *block, size_t bytes)
{
    const char *end;

    if (block && culet_early_owns(block, &end))
        return leave_early(block, end, bytes);
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, 1);
    return culet_count_block(culet_next.realloc(block, bytes), bytes);
}

EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, total);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);
    return culet_count_block(culet_next.memalign(alignment, bytes), bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);
    return culet_count_block(culet_next.aligned_alloc(alignment, bytes), bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0)) {
        *block = culet_early_malloc(bytes, alignment);
        return *block ? 0 : ENOMEM;
    }

    int error = culet_next.posix_memalign(block, alignment, bytes);
    if (!error)
        culet_count_block(*block, bytes);
    return error;
}

EXPORT void *valloc(size_t bytes)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), bytes);
}
