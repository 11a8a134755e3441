/* instructions.c - runs each fast path a known number of times, for callgrind to count.
 *
 * Each measure_NAME is called once, with the heap in the state that its path needs: every call takes the same path, so
 * the count per call is a whole number. instructions.sh counts. */
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

/* Sizes that this program uses nowhere else: their classes start empty. A unit has 32 and 16 blocks. */
#define BYTES 112
#define UNIT 32
#define OTHER_BYTES 240

/* Enough units for the thread to become biased while they are allocated. */
#define UNITS 96
#define CALLS 12

void *culet_test_block[UNITS * UNIT]; /* not static, so that the stores are not removed */
#define block culet_test_block

#define MEASURE(name)                                                                                                  \
    __attribute__((noinline, noclone)) void measure_##name(void);                                                      \
    void measure_##name(void)

MEASURE(malloc)
{
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = malloc(BYTES);
}

/* A block of the unit that the thread has claimed, while it is not biased. */
MEASURE(free_own_unit)
{
    for (unsigned i = 0; i < CALLS; i++)
        free(block[i + 1]);
}

MEASURE(malloc_usable_size)
{
    for (unsigned i = 0; i < CALLS; i++)
        block[0] = (void *)(malloc_usable_size(block[i + 1]) + (size_t)block[0]);
}

MEASURE(realloc_in_place)
{
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = realloc(block[i + 1], BYTES - 8);
}

MEASURE(calloc)
{
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = calloc(2, OTHER_BYTES / 2);
}

/* Blocks of units that are neither full before nor empty afterwards. */
MEASURE(free_other_unit_biased)
{
    for (unsigned i = 0; i < CALLS; i++)
        free(block[(i + 16) * UNIT + 1]);
}

MEASURE(free_other_unit_shared)
{
    for (unsigned i = 0; i < CALLS; i++)
        free(block[(i + 16) * UNIT + 2]);
}

static void *use_the_heap(void *data)
{
    for (unsigned i = 0; i < 100; i++)
        free(malloc((size_t)data));
    return NULL;
}

int main(void)
{
    pthread_t thread;

    block[0] = malloc(BYTES);
    measure_malloc();
    measure_malloc_usable_size();
    measure_realloc_in_place();
    measure_free_own_unit();

    free(malloc(OTHER_BYTES));
    measure_calloc();

    for (unsigned i = 0; i < UNITS * UNIT; i++)
        block[i] = malloc(BYTES);
    for (unsigned i = 0; i < UNITS; i++)
        free(block[i * UNIT]);
    measure_free_other_unit_biased();

    /* Another thread's use ends the bias; the heap is shared for a while. */
    if (pthread_create(&thread, NULL, use_the_heap, (void *)BYTES) != 0)
        return 1;
    pthread_join(thread, NULL);
    measure_free_other_unit_shared();
    return 0;
}
