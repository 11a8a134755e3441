/* culet.h - what libculet.so exports: libc's allocation functions, with the behaviour of glibc 2.36, and three of its
 * own.
 *
 * With CULET_PREFIXED they are called culet_malloc, culet_free and so on, beside the C library's own: the tests with
 * sanitizers use this. */
#pragma once

#include "stats.h"

#include <stddef.h>
#include <stdio.h>

/* malloc.h is not included: before glibc 2.33 it has no mallinfo2. These are its layouts. */
struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

#ifdef CULET_PREFIXED
#define CULET_NAME(name) culet_##name
#else
#define CULET_NAME(name) name
#endif
#define CULET_API __attribute__((visibility("default"))) extern

CULET_API void *CULET_NAME(malloc)(size_t bytes);
CULET_API void CULET_NAME(free)(void *block);
CULET_API void *CULET_NAME(calloc)(size_t count, size_t bytes);
CULET_API void *CULET_NAME(realloc)(void *block, size_t bytes);
CULET_API void *CULET_NAME(reallocarray)(void *block, size_t count, size_t bytes);
CULET_API void *CULET_NAME(memalign)(size_t alignment, size_t bytes);
CULET_API int CULET_NAME(posix_memalign)(void **block, size_t alignment, size_t bytes);
CULET_API void *CULET_NAME(aligned_alloc)(size_t alignment, size_t bytes);
CULET_API void *CULET_NAME(valloc)(size_t bytes);
CULET_API void *CULET_NAME(pvalloc)(size_t bytes);
CULET_API size_t CULET_NAME(malloc_usable_size)(void *block);
CULET_API void CULET_NAME(free_sized)(void *block, size_t bytes);
CULET_API void CULET_NAME(free_aligned_sized)(void *block, size_t alignment, size_t bytes);

CULET_API int CULET_NAME(malloc_trim)(size_t pad);
CULET_API int CULET_NAME(mallopt)(int parameter, int value);
CULET_API struct mallinfo CULET_NAME(mallinfo)(void);
CULET_API struct mallinfo2 CULET_NAME(mallinfo2)(void);
CULET_API void CULET_NAME(malloc_stats)(void);
CULET_API int CULET_NAME(malloc_info)(int options, FILE *stream);

/* The version, like "0.1.0". */
CULET_API const char *culet_version(void);

/* 1 if culet serves this process, 0 if it is dormant (program.h). */
CULET_API int culet_active(void);

/* The third is culet_stats (stats.h). */
