/* usage: heap KIND MEGABYTES THREADS
 *
 * Fills a heap for the reader, prints "ready", and waits to be killed. KIND:
 *   mixed  blocks of 1 to 700 bytes, a twentieth up to 20 KB, a thousandth up to 300 KB; a fifth freed at random
 *   small  blocks of 24 bytes, all in use: 32 bytes each with glibc's header
 *   holes  as mixed, but of 100 neighbours 60 freed, every other stretch wholly, and malloc_trim called
 *   busy   as mixed, and the threads go on replacing blocks at random */
#define _GNU_SOURCE
#include "../allocator/probes/probe.h"

#include <malloc.h>

/* At most the mean size of a mixed block (350 + 500 + 150), to size the array of pointers. */
#define MIXED_AVERAGE 900
#define SMALL 24
#define SMALL_CHUNK 32 /* with glibc's header */
#define STRETCH 4096   /* blocks */

static const char *kind;
static size_t share; /* bytes of each thread */
static pthread_barrier_t filled;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static size_t size_for(uint64_t *random)
{
    uint64_t value = next_random(random);

    if (is("small"))
        return SMALL;
    if (value % 1000 == 0)
        return 1 + (value >> 10) % 300000;
    return 1 + (value >> 10) % (value % 20 == 0 ? 20000 : 700);
}

static void *new_block(uint64_t *random, size_t *bytes)
{
    size_t size = size_for(random);
    void *block = take(size);

    memset(block, 0x5a, size);
    *bytes += size;
    return block;
}

/* Without pointers to them, which would take a tenth of the heap. */
static void fill_small(uint64_t *random)
{
    size_t unused = 0;

    for (size_t i = 0; i < share / SMALL_CHUNK; i++)
        new_block(random, &unused);
}

static int to_be_freed(size_t index, uint64_t *random)
{
    uint64_t percent = next_random(random) % 100;

    return is("holes") ? percent < 60 || index / STRETCH % 2 : percent < 20;
}

/* Returns the blocks, some of them NULL, and how many there are. */
static void **fill_mixed(uint64_t *random, size_t *blocks_count)
{
    size_t count = 0, room = share / MIXED_AVERAGE, bytes = 0;
    void **blocks = take(room * sizeof *blocks);

    while (bytes < share && count < room)
        blocks[count++] = new_block(random, &bytes);
    for (size_t i = 0; i < count; i++)
        if (to_be_freed(i, random)) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    *blocks_count = count;
    return blocks;
}

static void *fill(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    size_t count = 0, unused = 0;
    void **blocks = NULL;

    if (is("small"))
        fill_small(&random);
    else
        blocks = fill_mixed(&random, &count);
    wait_at(&filled);
    while (is("busy")) {
        size_t i = next_random(&random) % count;
        free(blocks[i]);
        blocks[i] = new_block(&random, &unused);
    }
    /* A thread that ended would return its cache. The first one continues in main. */
    while (argument != (void *)1)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned threads;

    if (argc != 4 || (threads = (unsigned)atoi(argv[3])) < 1)
        return 2;
    kind = argv[1];
    share = ((size_t)atoi(argv[2]) << 20) / threads;
    /* All threads wait for the last one; the main thread fills too, unless the heap is busy. */
    make_barrier(&filled, threads + (is("busy") ? 1 : 0));
    for (uintptr_t i = 2; i <= threads; i++)
        start_thread(fill, (void *)i);
    if (is("busy")) {
        start_thread(fill, (void *)(uintptr_t)(threads + 1));
        wait_at(&filled);
    } else {
        fill((void *)1);
    }
    if (is("holes"))
        malloc_trim(0);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return 1;
    for (;;)
        pause();
}
