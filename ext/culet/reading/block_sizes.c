#include "reading/block_sizes.h"

#include <stdlib.h>

#include "common/active_malloc.h"

#define STEP_BYTES ((uint64_t)16)
#define SMALL_BYTES (CULET_BLOCK_STEPS * STEP_BYTES)
#define SMALL_BITS 10 /* SMALL_BYTES is two to the power of this */
#define STEP_BITS 6   /* and so is CULET_BLOCK_STEPS */

typedef size_t usable_function(void *block);

void culet_block_sizes_init(struct culet_block_sizes *sizes)
{
    struct active_malloc library;
    void *pointer;

    *sizes = (struct culet_block_sizes){.usable = NULL};
    if (!culet_find_active_malloc(&library) ||
        (pointer = culet_malloc_function(&library, "malloc_usable_size")) == NULL)
        return;
    AS_FUNCTION(usable_function, usable, pointer);
    sizes->usable = usable;
    /* glibc counts the sizes of chunks: that of the next one lies in between (malloc/malloc.c). */
    if (culet_malloc_function(&library, "gnu_get_libc_version") != NULL)
        sizes->header_bytes = sizeof(size_t);
}

/* Sets the largest request of the step. */
static size_t step_of(uint64_t request, uint64_t *largest)
{
    unsigned bits, shift;

    if (request <= SMALL_BYTES) {
        *largest = (request + STEP_BYTES - 1) & ~(STEP_BYTES - 1);
        return (size_t)(*largest / STEP_BYTES - 1);
    }
    bits = 63 - (unsigned)__builtin_clzll(request - 1);
    shift = bits - STEP_BITS;
    *largest = (((request - 1) >> shift) + 1) << shift;
    return (bits - SMALL_BITS) * CULET_BLOCK_STEPS + (size_t)((request - 1) >> shift);
}

uint64_t culet_block_bytes(struct culet_block_sizes *sizes, uint64_t request)
{
    uint64_t largest;
    size_t step;

    if (sizes->usable == NULL || request == 0 || request > SMALL_BYTES << CULET_BLOCK_DOUBLINGS)
        return request;
    step = step_of(request, &largest);
    if (sizes->bytes[step] == 0) {
        void *block = malloc(largest);
        sizes->bytes[step] = block == NULL ? largest : sizes->usable(block) + sizes->header_bytes;
        free(block);
    }
    return sizes->bytes[step];
}
