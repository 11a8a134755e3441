/* usage: musl_heap WHAT MEGABYTES
 *
 * Linked with musl. Stops before it allocates, and again with its blocks; then it prints what they take: the slots that
 * they lie in, each found from the block by the header in front of it, and the blocks with mappings of their own. WHAT:
 * small, mixed, large, churned (each block replaced four times), emptied (nearly all freed again), threads. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../layouts/musl_heap.h"

#define MOST 2000000

static const char *what;
static void **blocks;
static size_t count, requested;
static uint64_t seed = 1;

static uint64_t random_number(void)
{
    uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t random_size(void)
{
    uint64_t value = random_number();

    if (strcmp(what, "large") == 0)
        return 100000 + value % 3000000;
    if (strcmp(what, "small") == 0)
        return 1 + value % 500;
    if (value % 500 == 0)
        return 1 + (value >> 10) % 300000;
    return 1 + (value >> 10) % (value % 20 ? 700 : 20000);
}

static void *new_block(size_t bytes)
{
    void *block = random_number() % 50 ? malloc(bytes) : aligned_alloc((size_t)16 << random_number() % 9, bytes);

    if (!block)
        _exit(4);
    memset(block, 1, bytes);
    return block;
}

static void fill(size_t bytes)
{
    for (size_t all = 0; all < bytes && count < MOST; count++) {
        size_t size = random_size();
        blocks[count] = new_block(size);
        all += size;
    }
}

static void empty(unsigned one_in)
{
    for (size_t i = 0; i < count; i++)
        if (random_number() % one_in) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
}

static void churn(void)
{
    for (size_t i = 0; i < 4 * count; i++) {
        size_t at = random_number() % count;
        free(blocks[at]);
        blocks[at] = new_block(random_size());
    }
}

static pthread_barrier_t started;

static void *allocate_and_rest(void *block)
{
    *(void **)block = malloc(100);
    pthread_barrier_wait(&started);
    pause();
    return NULL;
}

static void start_threads(void)
{
    enum { THREADS = 4 };
    pthread_t thread;

    pthread_barrier_init(&started, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, allocate_and_rest, &blocks[count++]))
            _exit(5);
    pthread_barrier_wait(&started);
}

static uint64_t word_at(const char *address)
{
    uint64_t word;

    memcpy(&word, address, sizeof word);
    return word;
}

static unsigned half_at(const char *address)
{
    uint16_t half;

    memcpy(&half, address, sizeof half);
    return half;
}

/* The group is found by the offset in front of the block, in units of 16 bytes: 16 bits, or 32 if a byte says so. */
static void add_block(char *block, uint64_t *used, uint64_t *large, uint64_t *large_blocks)
{
    uint64_t offset = half_at(block - 2);
    uint32_t far;

    if (block[-4]) {
        memcpy(&far, block - 8, sizeof far);
        offset = far;
    }
    char *group = block - 16 * offset - MUSL_GROUP_HEADER_BYTES;
    uint64_t numbers = word_at((char *)word_at(group) + MUSL_META_NUMBERS);
    if (MUSL_META_MAPPED_PAGES(numbers) && !MUSL_META_LAST_SLOT(numbers)) {
        *large += MUSL_META_MAPPED_PAGES(numbers) * 4096;
        ++*large_blocks;
    } else {
        *used += UINT64_C(16) * musl_class_units[MUSL_META_CLASS(numbers)];
    }
}

static void print_and_stop(void)
{
    uint64_t used = 0, large = 0, large_blocks = 0, live = 0;
    char line[300];

    for (size_t i = 0; i < count; i++)
        if (blocks[i]) {
            add_block(blocks[i], &used, &large, &large_blocks);
            requested += malloc_usable_size(blocks[i]);
            live++;
        }
    int length = snprintf(line, sizeof line, "musl used=%llu large=%llu mappings=%llu live=%llu usable=%zu page=%d\n",
                          (unsigned long long)used, (unsigned long long)large, (unsigned long long)large_blocks,
                          (unsigned long long)live, requested, getpagesize());
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3);
    raise(SIGSTOP);
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 2 ? atoi(argv[2]) : 10) << 20;

    what = argc > 1 ? argv[1] : "mixed";
    /* A block of its own, as all else that is there at the first stop. */
    blocks = calloc(MOST, sizeof *blocks);
    print_and_stop();
    if (strcmp(what, "threads") == 0)
        start_threads();
    fill(bytes);
    if (strcmp(what, "emptied") == 0)
        empty(50);
    else
        empty(3);
    if (strcmp(what, "churned") == 0)
        churn();
    print_and_stop();
    return 0;
}
