/* usage: heap WHAT THREADS MEGABYTES
 *
 * Fills a heap, frees parts of it, and stops with its threads alive. WHAT: mixed (small and middle blocks), small
 * (at most 500 bytes), large (mapped chunks), aligned (memalign with all alignments), trimmed (malloc_trim in
 * between), gaps (others use brk too), nobrk (brk fails: the main arena uses mappings), forked (shared with a
 * child), churned (each block replaced four times, at random). With HEAP_RESERVES set it also has a mapping of 8
 * TiB, with one page in memory. */
#include "target.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const char *what;
static size_t share;
static pthread_barrier_t filled;
static void *brk_used;
static __thread bool is_main; /* whose heap grows by brk, which takes no locks */

/* A page at this address, or elsewhere. */
static void *mmap_here(void *address)
{
    return mmap(address, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static size_t size_for(uint64_t *random)
{
    uint64_t value = next_random(random);

    if (strcmp(what, "small") == 0)
        return 1 + value % 500;
    if (strcmp(what, "large") == 0)
        return 100000 + value % 3000000;
    if (value % 1000 == 0)
        return 1 + (value >> 10) % 300000;
    if (value % 20 == 0)
        return 1 + (value >> 10) % 20000;
    return 1 + (value >> 10) % 700;
}

static void *block_of(size_t bytes, uint64_t *random)
{
    if (strcmp(what, "aligned") == 0) {
        bytes = next_random(random) % 10 ? bytes : 200000 + bytes;
        return memalign((size_t)1 << (4 + next_random(random) % 14), bytes);
    }
    if (strcmp(what, "gaps") == 0 && is_main && next_random(random) % 2500 == 0) {
        brk_used = sbrk((intptr_t)(next_random(random) % 30000));
        memset(brk_used, 0x41, 8);
    }
    return malloc(bytes);
}

/* Replaces blocks at random, by others of other sizes. */
static void churn(void **blocks, size_t count, uint64_t *random)
{
    for (size_t i = 0; i < 4 * count; i++) {
        size_t at = next_random(random) % count;
        free(blocks[at]);
        blocks[at] = malloc(size_for(random));
    }
}

static void *fill(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    is_main = argument == (void *)1;
    size_t count = 0, room = share / 64 + 16, bytes = 0;
    void **blocks = calloc(room, sizeof *blocks);

    while (bytes < share && count < room) {
        size_t size = size_for(&random);
        void *block = block_of(size, &random);
        if (!block)
            _exit(4);
        memset(block, 1, size < 4096 ? size : 4096 + (size - 4096) / 2);
        blocks[count++] = block;
        bytes += size;
    }
    for (size_t i = 0; i < count; i++)
        if (next_random(&random) % 5 < 3 || (i / 1000) % 4 == 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    if (strcmp(what, "trimmed") == 0)
        malloc_trim(0);
    if (strcmp(what, "churned") == 0)
        churn(blocks, count, &random);
    for (size_t i = 0; i < count; i++)
        if (!blocks[i] && next_random(&random) % 3 == 0)
            blocks[i] = malloc(size_for(&random) % 2000);
    pthread_barrier_wait(&filled);
    if (random != (uintptr_t)argument && argument != (void *)1)
        pause();
    return NULL;
}

/* The child has stopped when this returns: as long as it runs it writes, and what it writes it shares no more. */
static void share_with_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        raise(SIGSTOP);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, WUNTRACED) != child)
        _exit(7);
}

#define RESERVED (UINT64_C(8) << 40)

/* None where the system promises no more memory than it has. */
static void reserve(void)
{
    char *memory = mmap(NULL, RESERVED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory != MAP_FAILED)
        memory[RESERVED - 4096] = 1;
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

    if (getenv("HEAP_RESERVES"))
        reserve();
    what = argc > 1 ? argv[1] : "mixed";
    share = ((size_t)(argc > 3 ? atoi(argv[3]) : 50) << 20) / threads;
    if (strcmp(what, "nobrk") == 0) {
        /* Someone else's mapping right behind brk keeps it from growing. */
        void *first = malloc(100);
        brk_used = first;
        char *end = (char *)(((uintptr_t)sbrk(0) + 65535) & ~UINT64_C(65535)) + 65536;
        if (mmap_here(end) != end)
            _exit(5);
    }
    pthread_barrier_init(&filled, NULL, threads);
    for (unsigned i = 2; i <= threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fill, (void *)(uintptr_t)i))
            _exit(6);
    }
    fill((void *)1);
    if (strcmp(what, "forked") == 0)
        share_with_child();
    print_and_stop();
    return 0;
}
