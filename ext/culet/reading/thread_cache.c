#include "reading/thread_cache.h"

#include <stdlib.h>

#include "common/active_malloc.h"

/* glibc's classes of cached blocks: usable sizes of 24, 40, ... 1,032 bytes (malloc/malloc.c, TCACHE_MAX_BINS). */
#define CLASSES 64
#define LEAST_BYTES 24
#define STEP_BYTES 16
/* Cached blocks of a class by default: 7, and 16 from glibc 2.43 on. */
#define BLOCKS 16

/* Takes what the cache has, and frees as much as it can keep. */
static void fill_class(size_t bytes)
{
    void *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(bytes);
        /* Keeps the compiler from removing malloc calls whose blocks are not used. */
        __asm__ volatile("" : "+r"(blocks[i]) : : "memory");
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

void culet_settle_thread_cache(void)
{
    CULET_OF_MALLOC(culet_mallctl_function, mallctl, "mallctl");

    if (mallctl != NULL)
        (void)mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    else if (culet_malloc_function("gnu_get_libc_version") != NULL)
        for (size_t i = 0; i < CLASSES; i++)
            fill_class(LEAST_BYTES + i * STEP_BYTES);
}
