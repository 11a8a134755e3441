/* blocks.c - threads allocate and free, then wait; the program prints the allocator's own figures and stops itself.
 *
 *     blocks THREADS STEPS still    stops itself (SIGSTOP) after the figures; trims when continued
 *     blocks THREADS STEPS full     the same, while the last freed memory is still kept
 *     blocks THREADS STEPS busy     prints "busy" and goes on allocating until it is killed
 *
 * Run with libculet.so preloaded. */
#define _GNU_SOURCE
#include "../../../allocator/src/stats.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHELF 6000 /* blocks that are held at a time, by all threads */

static _Atomic(void *) shelf[SHELF];
static unsigned long steps;
static bool busy;
static pthread_barrier_t done;
static struct culet_stats figures;
static char text[1 << 16];

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Mostly small ones, some runs, a few that the kernel maps. */
static size_t some_size(uint64_t *state)
{
    uint64_t dice = next(state) % 1000;

    if (dice < 2)
        return ((size_t)1 << 20) + next(state) % (2 << 20);
    if (dice < 20)
        return 32769 + next(state) % 500000;
    return dice < 200 ? 1 + next(state) % 32768 : 1 + next(state) % 1024;
}

static void *some_block(uint64_t *state)
{
    size_t bytes = some_size(state);
    char *block = next(state) % 4 ? malloc(bytes) : calloc(1, bytes);

    if (!block)
        abort();
    memset(block, 1, bytes);
    return block;
}

/* A thread frees what any of them took. */
static void churn(uint64_t *state)
{
    void *block = next(state) % 3 ? some_block(state) : NULL;

    free(atomic_exchange(&shelf[next(state) % SHELF], block));
}

static void *work(void *seed)
{
    uint64_t state = (uintptr_t)seed;

    for (unsigned long i = 0; busy || i < steps; i++)
        churn(&state);
    pthread_barrier_wait(&done);
    for (;;)
        pause();
    return NULL;
}

static size_t print(size_t at, const char *name, uint64_t number)
{
    return at + (size_t)snprintf(text + at, sizeof text - at, "%s %lu\n", name, (unsigned long)number);
}

static size_t print_figures(void)
{
    size_t at = 0;

    at = print(at, "used", figures.used_bytes);
    at = print(at, "heap", figures.heap_bytes);
    at = print(at, "free", figures.free_bytes);
    at = print(at, "cached", figures.cached_bytes);
    at = print(at, "large", figures.large_bytes);
    at = print(at, "large_blocks", figures.large_blocks);
    at = print(at, "segments", figures.segments);
    at = print(at, "runs", figures.runs);
    at = print(at, "run_bytes", figures.run_bytes);
    at = print(at, "descriptors", figures.descriptor_bytes);
    for (unsigned k = 0; k < figures.classes; k++)
        if (figures.class[k].block_bytes)
            at += (size_t)snprintf(text + at, sizeof text - at, "class %lu %lu %lu\n",
                                   (unsigned long)figures.class[k].block_bytes, (unsigned long)figures.class[k].used,
                                   (unsigned long)(figures.class[k].free + figures.class[k].cached));
    return at + (size_t)snprintf(text + at, sizeof text - at, "end\n");
}

static void say(const char *what, size_t bytes)
{
    if (write(STDOUT_FILENO, what, bytes) != (ssize_t)bytes)
        _exit(3);
}

typedef int ask(struct culet_stats *, size_t);

/* The allocator's own thread gives back for a while what has become idle: waits until nothing has changed for four of
 * its intervals, which are half a second. */
static int settle(ask *stats)
{
    struct culet_stats before;

    if (stats(&figures, sizeof figures))
        return -1;
    for (unsigned same = 0, i = 0; same < 7 && i < 60; i++) {
        before = figures;
        usleep(300000);
        if (stats(&figures, sizeof figures))
            return -1;
        same = memcmp(&before, &figures, sizeof before) == 0 ? same + 1 : 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    ask *stats = (ask *)dlsym(RTLD_DEFAULT, "culet_stats");
    unsigned long threads = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;

    if (!threads || !stats)
        return 2;
    steps = strtoul(argv[2], NULL, 10);
    busy = strcmp(argv[3], "busy") == 0;
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    for (unsigned long t = 0; t < threads; t++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(t + 1)))
            return 3;
    }
    if (busy)
        say("busy\n", 5);
    pthread_barrier_wait(&done);
    if (strcmp(argv[3], "still") == 0 ? settle(stats) : stats(&figures, sizeof figures))
        return 4;
    say(text, print_figures());
    raise(SIGSTOP);
    malloc_trim(0);
    say("trimmed\n", 8);
    for (;;)
        pause();
}
