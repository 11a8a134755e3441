/* Real limits, with the library preloaded: when the address space or the data segment is used up malloc returns NULL
 * and ENOMEM, and after the blocks are freed all of it is available again. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#define LIMIT ((rlim_t)192 << 20)

/* Blocks in a linked list; the rest of each block is filled. */
struct link {
    struct link *next;
    size_t bytes;
};

static void check_preloaded(void)
{
    int (*active)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "culet_active");

    CHECK(active && active() == 1, "the library is not preloaded");
}

static void set_limit(int resource)
{
    struct rlimit limit;

    check_preloaded();
    CHECK(getrlimit(resource, &limit) == 0, "getrlimit failed");
    limit.rlim_cur = LIMIT;
    CHECK(setrlimit(resource, &limit) == 0, "setrlimit failed");
}

static struct link *take_all(size_t bytes, size_t *taken)
{
    struct link *first = NULL, *link;

    *taken = 0;
    errno = 0;
    while ((link = malloc(bytes))) {
        memset(link, 0x5a, bytes);
        link->next = first;
        link->bytes = bytes;
        first = link;
        *taken += bytes;
        CHECK(*taken <= LIMIT, "more than the limit");
        errno = 0;
    }
    CHECK_EQUAL(errno, ENOMEM);
    return first;
}

static void give_all(struct link *link)
{
    while (link) {
        struct link *next = link->next;
        const unsigned char *rest = (const unsigned char *)(link + 1);
        /* Each byte is as the one before. */
        if (rest[0] != 0x5a || memcmp(rest, rest + 1, link->bytes - sizeof *link - 1) != 0)
            CHECK(false, "a block of %zu was changed", link->bytes);
        errno = 9;
        free(link);
        CHECK_EQUAL(errno, 9);
        link = next;
    }
}

/* What the heap still holds. musl's headers do not declare malloc_info. */
static void print_heap(void)
{
    int (*info)(int, FILE *) = (int (*)(int, FILE *))dlsym(RTLD_DEFAULT, "malloc_info");

    if (info)
        info(0, stderr);
}

static void fill_and_empty(int resource)
{
    static const size_t sizes[] = {48, 1000, 5000, 100000, 5 << 20, 48, 5 << 20, 100000};

    set_limit(resource);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t taken;
        struct link *all = take_all(sizes[i], &taken);
        if (taken < LIMIT / 2)
            print_heap();
        CHECK(taken >= LIMIT / 2, "out of memory after %zu of %lu bytes, in blocks of %zu", taken, (unsigned long)LIMIT,
              sizes[i]);
        CHECK(!malloc(LIMIT) && errno == ENOMEM, "more than there is");
        CHECK(!calloc(LIMIT / 8, 8) && errno == ENOMEM, "more than there is");
        CHECK(!realloc(all, LIMIT) && errno == ENOMEM, "more than there is");
        void *kept = all;
        CHECK(posix_memalign(&kept, 4096, LIMIT) == ENOMEM && kept == all, "more than there is");
        give_all(all);
    }
}

TEST(the_address_space_is_limited)
{
    fill_and_empty(RLIMIT_AS);
}

TEST(the_data_segment_is_limited)
{
    fill_and_empty(RLIMIT_DATA);
}

TEST(a_huge_block_that_cannot_grow_stays_whole)
{
    set_limit(RLIMIT_AS);
    size_t bytes = 2 << 20;
    unsigned char *block = malloc(bytes), *grown;

    CHECK(block, "no memory");
    memset(block, 7, bytes);
    while ((grown = realloc(block, bytes * 2))) {
        block = grown;
        memset(block + bytes, 7, bytes);
        bytes *= 2;
    }
    CHECK_EQUAL(errno, ENOMEM);
    /* Growing moves pages: there need be no room for both the old and the new block. */
    CHECK(bytes >= LIMIT / 4, "it could not grow beyond %zu bytes", bytes);
    for (size_t i = 0; i < bytes; i++)
        if (block[i] != 7)
            CHECK(false, "byte %zu of %zu was changed", i, bytes);
    free(block);
    CHECK((block = malloc(bytes)), "the freed memory is not available again");
    free(block);
}

static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    CHECK(file && fscanf(file, "%zu", &pages) == 1, "statm cannot be read");
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The pages of freed huge blocks are cached for the next ones; small blocks get them when there is nothing else. */
TEST(small_blocks_use_freed_huge_ones)
{
    enum { SMALL = 1000, KEPT = 20000, HUGE = 4 };
    const size_t huge_bytes = (size_t)4 << 20;
    unsigned char *huge[HUGE];
    size_t taken = 0;

    check_preloaded();
    for (unsigned i = 0; i < KEPT; i++)
        CHECK(malloc(SMALL), "no memory");
    for (unsigned i = 0; i < HUGE; i++) {
        CHECK((huge[i] = malloc(huge_bytes)), "no memory");
        memset(huge[i], 7, huge_bytes);
    }
    for (unsigned i = 0; i < HUGE; i++)
        free(huge[i]);
    struct rlimit limit = {address_space(), RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit failed");
    while (malloc(SMALL))
        taken += SMALL;
    CHECK(taken >= HUGE * huge_bytes / 2, "out of memory after %zu bytes, though %zu had been freed", taken,
          HUGE * huge_bytes);
}

static void *fill_in_a_thread(void *data)
{
    size_t taken;

    give_all(take_all(*(size_t *)data, &taken));
    return NULL;
}

TEST(threads_run_out_together)
{
    static size_t sizes[] = {64, 640, 6400, 64000};
    pthread_t thread[4];

    set_limit(RLIMIT_DATA);
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, fill_in_a_thread, &sizes[i]) == 0, "no thread");
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    size_t taken;
    give_all(take_all(100000, &taken));
    CHECK(taken >= LIMIT / 2, "only %zu bytes are left after the threads", taken);
}

CHECK_MAIN
