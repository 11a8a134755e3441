/* api.c - the malloc functions: each calls the next allocator and tells the library that it is compiled for, by the
 * functions of its hooks.h. */
#define _GNU_SOURCE
#include "next.h"

#include <hooks.h>

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* C23; older versions of libc do not declare them. */
EXPORT void free_sized(void *block, size_t bytes);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes);

/* musl does not declare it. */
EXPORT void *pvalloc(size_t bytes);

/* Calls of the next allocator that call other malloc functions by name, which come back here: musl's calloc calls malloc,
 * its aligned functions aligned_alloc. One request is one event. glibc's functions do not. */
#ifdef __GLIBC__
#define nested false
#define NESTING(call) (call)
#else
static _Thread_local bool nested __attribute__((tls_model("initial-exec")));
#define NESTING(call)                                                                                                  \
    ({                                                                                                                 \
        bool before = nested;                                                                                          \
        nested = true;                                                                                                 \
        __typeof__(call) result = (call);                                                                              \
        nested = before;                                                                                               \
        result;                                                                                                        \
    })
#endif

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* ---- standard C ---- */

EXPORT void *malloc(size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, 1);

    void *block = culet_next.malloc(bytes);
    if (!nested)
        culet_hook_allocated(bytes, block, false);
    return block;
}

/* False where the next allocator must not free the block. */
static bool begin_free(const void *block)
{
    if (!block || __builtin_expect(culet_early_left(block) != 0, 0) || __builtin_expect(!culet_next_ready(), 0))
        return false;
    culet_hook_free(block);
    return true;
}

EXPORT void free(void *block)
{
    if (begin_free(block))
        culet_next.free(block);
}

EXPORT void free_sized(void *block, size_t bytes)
{
    if (!begin_free(block))
        return;
    if (culet_next.free_sized)
        culet_next.free_sized(block, bytes);
    else
        culet_next.free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    if (!begin_free(block))
        return;
    if (culet_next.free_aligned_sized)
        culet_next.free_aligned_sized(block, alignment, bytes);
    else
        culet_next.free(block);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return out_of_memory();
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(total, 1);

    void *block = NESTING(culet_next.calloc(count, bytes));
    if (!nested)
        culet_hook_allocated(total, block, true);
    return block;
}

/* The size of an early block is not known: copies up to the end of early memory. */
static void *copy_early(const void *block, size_t bytes)
{
    size_t readable = culet_early_left(block);
    void *copy = malloc(bytes);

    if (copy)
        memcpy(copy, block, bytes < readable ? bytes : readable);
    return copy;
}

EXPORT void *realloc(void *block, size_t bytes)
{
    if (!block)
        return malloc(bytes);
    if (__builtin_expect(culet_early_left(block) != 0 || !culet_next_ready(), 0))
        return copy_early(block, bytes);

    uint64_t before = culet_hook_before_realloc(block);
    void *moved = culet_next.realloc(block, bytes);
    int saved = errno;
    culet_hook_realloc(block, bytes, moved, before);
    errno = saved;
    return moved;
}

EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return out_of_memory();
    return realloc(block, total);
}

/* ---- aligned ---- */

static size_t round_up_to_power(size_t alignment)
{
    return alignment <= 1 ? 1 : (size_t)1 << (sizeof(long) * CHAR_BIT - (unsigned)__builtin_clzl(alignment - 1));
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);

    void *block = NESTING(culet_next.memalign(alignment, bytes));
    if (!nested)
        culet_hook_aligned(round_up_to_power(alignment), bytes, block);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);

    void *block = NESTING(culet_next.aligned_alloc(alignment, bytes));
    if (!nested)
        culet_hook_aligned(round_up_to_power(alignment), bytes, block);
    return block;
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0)) {
        *block = culet_early_malloc(bytes, alignment);
        return *block ? 0 : ENOMEM;
    }

    int error = NESTING(culet_next.posix_memalign(block, alignment, bytes));
    if (!error && !nested)
        culet_hook_aligned(round_up_to_power(alignment), bytes, *block);
    return error;
}

/* Allocators have these two for old programs only, as memalign of pages. */
EXPORT void *valloc(size_t bytes)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), bytes);
}

EXPORT void *pvalloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = bytes ? (bytes + page - 1) & ~(page - 1) : page;

    return whole < bytes ? out_of_memory() : memalign(page, whole);
}
