/* instructions.c - runs each fast path a known number of times, for callgrind to count.
 *
 * Each measure_NAME is called once, with the heap in the state that its path needs: every call takes the same path, so
 * the count per call is a whole number. instructions.sh counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

/* Sizes that this program uses nowhere else: their classes start empty. */
#define BYTES 112
#define OTHER_BYTES 240
#define MEDIUM_BYTES 3000
#define UNIT 64 /* blocks */
#define CALLS 12

void *culet_test_block[4 * UNIT]; /* not static, so that the stores are not removed */
#define block culet_test_block

#define MEASURE(name)                                                                                                  \
    __attribute__((noinline, noclone)) void measure_##name(void);                                                      \
    void measure_##name(void)

MEASURE(malloc)
{
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = malloc(BYTES);
}

/* In the arena that the thread holds, in a unit that is neither full before nor empty afterwards. */
MEASURE(free)
{
    for (unsigned i = 0; i < CALLS; i++)
        free(block[i + 1]);
}

MEASURE(malloc_medium)
{
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = malloc(MEDIUM_BYTES);
}

MEASURE(free_medium)
{
    for (unsigned i = 0; i < CALLS; i++)
        free(block[i + 1]);
}

typedef void free_sized_function(void *, size_t);
static free_sized_function *sized;

MEASURE(free_sized)
{
    for (unsigned i = 0; i < CALLS; i++)
        sized(block[i + 1], BYTES);
}

typedef void free_aligned_sized_function(void *, size_t, size_t);
static free_aligned_sized_function *aligned_sized;

MEASURE(free_aligned_sized)
{
    for (unsigned i = 0; i < CALLS; i++)
        aligned_sized(block[i + 1], 16, BYTES);
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

/* By a thread that holds another arena, in a unit that has been freed into before. */
MEASURE(free_remote)
{
    for (unsigned i = 0; i < CALLS; i++)
        free(block[UNIT + 2 + i]);
}

/* Threads run one at a time under callgrind, and seldom change inside an arena. So the first one stops inside: a signal
 * arrives there while it allocates. */
static _Atomic int stopped, go_on, apart;

static void stop_here(int signal)
{
    (void)signal;
    stopped = 1;
    while (!go_on)
        sched_yield();
    stopped = 0;
}

static void *free_remotely(void *data)
{
    char *near = block[UNIT];

    while (!apart) {
        go_on = 0;
        if (pthread_kill(*(pthread_t *)data, SIGUSR1) != 0)
            return NULL;
        while (!stopped)
            sched_yield();
        char *mine = malloc(BYTES);
        apart = mine < near - (64 << 10) || mine > near + (64 << 10);
        go_on = 1;
        while (stopped)
            sched_yield();
    }
    free(block[UNIT + 1]);
    measure_free_remote();
    return data;
}

static void fill(void)
{
    for (unsigned i = 0; i < 4 * UNIT; i++)
        block[i] = malloc(BYTES);
}

int main(void)
{
    pthread_t self = pthread_self(), thread;
    void *result;

    sized = (free_sized_function *)dlsym(RTLD_DEFAULT, "free_sized");
    aligned_sized = (free_aligned_sized_function *)dlsym(RTLD_DEFAULT, "free_aligned_sized");
    block[0] = malloc(BYTES);
    measure_malloc();
    measure_malloc_usable_size();
    measure_realloc_in_place();
    measure_free();
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = malloc(BYTES);
    measure_free_sized();
    for (unsigned i = 0; i < CALLS; i++)
        block[i + 1] = malloc(BYTES);
    measure_free_aligned_sized();

    block[UNIT] = malloc(OTHER_BYTES); /* so that the class has a current unit */
    measure_calloc();

    block[0] = malloc(MEDIUM_BYTES);
    measure_malloc_medium();
    measure_free_medium();

    fill();
    signal(SIGUSR1, stop_here);
    if (pthread_create(&thread, NULL, free_remotely, &self) != 0)
        return 1;
    while (!apart) {
        free(block[0]);
        block[0] = malloc(OTHER_BYTES);
        sched_yield(); /* callgrind runs the other thread only when this one makes a system call */
    }
    return pthread_join(thread, &result) != 0 || !result;
}
