#include "reading/block_sizes.h"

#include <stdlib.h>

#include "common/active_malloc.h"

#define STEP_BYTES ((uint64_t)16)
#define SMALL_BYTES (CULET_BLOCK_STEPS * STEP_BYTES)
/* Logarithms of SMALL_BYTES and of CULET_BLOCK_STEPS, to the base of two. */
#define SMALL_BITS 10
#define STEP_BITS 6

typedef size_t usable_function(void *block);

void culet_block_sizes_init(struct culet_block_sizes *sizes)
{
    CULET_OF_MALLOC(usable_function, usable, "malloc_usable_size");

    *sizes = (struct culet_block_sizes){.usable = usable};
    /* What glibc counts as in use are chunks, with the field for their size (malloc/malloc.c). */
    if (culet_malloc_function("gnu_get_libc_version") != NULL)
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
