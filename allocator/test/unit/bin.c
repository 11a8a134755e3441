/* Bins and caches: what threads claim, free for each other, and release when they end. */
#include "wakeup.h"
#include "bin.h"
#include "cache.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "pagemap.h"
#include "resident.h"
#include "slab.h"

#include <pthread.h>

static struct bin_counts counts_of(unsigned klass)
{
    struct heap_counts counts;

    count_heap(&counts);
    return counts.bins[klass];
}

static size_t used_bytes(void)
{
    struct heap_counts counts;

    count_heap(&counts);
    return counts.used_bytes;
}

static struct culet_slab *slab_of(void *block)
{
    return (struct culet_slab *)culet_pagemap_span((uintptr_t)block);
}

static void *get(size_t bytes)
{
    void *block = culet_malloc(bytes);

    CHECK(block, "no memory");
    return block;
}

/* A block of a class, for a heap that counts as large. */
static void *get_of(unsigned klass)
{
    size_t size = culet_classes[klass].size;

    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
    void *block = klass > CULET_SIZES ? culet_calloc(1, size) : culet_malloc(size);
    CHECK(block, "no memory");
    return block;
}

TEST(calloc_has_slabs_of_its_own_once_the_heap_is_large)
{
    get(1);
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        size_t size = culet_classes[klass].size;
        atomic_store(&culet_scavenger_state, CULET_SCAVENGER_NONE);
        unsigned char *small = culet_calloc(1, size), *large;
        CHECK_EQUAL(slab_of(small)->span.klass, klass);
        for (unsigned set = 0; set < 2; set++) {
            large = get_of(klass + set * CULET_SIZES);
            CHECK_EQUAL(slab_of(large)->span.klass, klass + set * CULET_SIZES);
            CHECK_EQUAL(culet_malloc_usable_size(large), size);
            memset(large, 1, size);
            culet_free(large);
        }
        large = culet_calloc(size, 1);
        for (size_t i = 0; i < size; i++)
            if (large[i])
                CHECK(false, "byte %zu of %zu is not zero", i, size);
        culet_free(large);
        culet_free(small);
    }
    culet_heap_check();
}

/* Several slabs of a class: all blocks allocated and freed in random order, the invariants checked in between. */
TEST(every_class_fills_and_empties)
{
    static void *block[20000];
    uint64_t seed = 1;

    get(1);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        size_t size = culet_classes[klass].size, count = 3u * culet_classes[klass].count + 1;
        size_t before = used_bytes(), every = count / 8 + 1;

        for (size_t i = 0; i < count; i++) {
            block[i] = get_of(klass);
            CHECK(slab_of(block[i])->span.klass == klass, "a block of another class");
            memset(block[i], (int)(i % 251), size);
            if (i % every == 0)
                culet_heap_check();
        }
        CHECK_EQUAL(used_bytes() - before, count * size);
        CHECK_EQUAL(counts_of(klass).live - (klass == 1), count);
        for (size_t i = count; i > 1; i--) {
            size_t other = check_random(&seed) % i;
            void *swap = block[i - 1];
            block[i - 1] = block[other];
            block[other] = swap;
        }
        for (size_t i = 0; i < count; i++) {
            culet_free(block[i]);
            if (i % every == 0)
                culet_heap_check();
        }
        CHECK_EQUAL(used_bytes(), before);
        CHECK(counts_of(klass).slabs <= 2, "%zu slabs of size %zu are kept needlessly", counts_of(klass).slabs, size);
        culet_heap_check();
    }
}

TEST(a_thread_holds_one_unit_per_class_at_the_most)
{
    void *block[CULET_CLASSES * 8];
    uint64_t seed = 2;
    size_t n = 0;

    for (unsigned round = 0; round < 8; round++)
        for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
            block[n++] = get(culet_classes[klass].size);
    for (unsigned i = 0; i < 200000; i++) {
        size_t which = check_random(&seed) % n;
        culet_free(block[which]);
        block[which] = get(1 + check_random(&seed) % CULET_SMALL_MAX);
    }
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        size_t claimed = counts_of(klass).claimed;
        CHECK(claimed <= 1u << culet_classes[klass].unit_shift, "%zu blocks of class %u are claimed", claimed, klass);
    }
    culet_heap_check();
}

TEST(a_flush_releases_all_claims)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_free(get(culet_classes[klass].size));
    culet_cache_flush();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        CHECK_EQUAL(counts_of(klass).claimed, 0);
        CHECK_EQUAL(counts_of(klass).live, 0);
        CHECK(counts_of(klass).slabs <= 1, "class %u", klass);
    }
    culet_heap_check();
    CHECK_EQUAL(used_bytes(), 0);
    culet_free(get(48)); /* a flushed cache goes on */
}

/* A small heap destroys its idle slabs, but keeps one that is needed again and again. */
TEST(an_idle_slab_is_kept_if_the_program_comes_back_for_it)
{
    struct heap_counts before, after;

    culet_free(get(100));
    culet_cache_flush();
    count_heap(&before);
    CHECK_EQUAL(before.pages.used, 0);
    for (unsigned i = 0; i < 100; i++) {
        culet_free(get(100));
        culet_cache_flush();
    }
    count_heap(&before);
    CHECK_EQUAL(before.pages.used, culet_classes[culet_size_class(100)].pages);
    for (unsigned i = 0; i < 1000; i++) {
        culet_free(get(100));
        culet_cache_flush();
    }
    count_heap(&after);
    CHECK_EQUAL(after.pages.used, before.pages.used);
    /* A reclaim destroys the slab too; not a thousand times. */
    CHECK(after.pages.purged_bytes - before.pages.purged_bytes <= 4 * before.pages.used * CULET_PAGE, "%zu bytes",
          after.pages.purged_bytes - before.pages.purged_bytes);
}

#define PASSED 30000
static void *passed[PASSED];

static void *free_passed(void *data)
{
    (void)data;
    for (unsigned i = 0; i < PASSED; i++)
        culet_free(passed[i]);
    return NULL;
}

static void run_thread(void *(*run)(void *), void *data)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run, data) == 0, "no thread");
    pthread_join(thread, NULL);
}

TEST(blocks_freed_by_another_thread_are_available_to_all)
{
    size_t first = 0;

    for (unsigned round = 0; round < 6; round++) {
        struct heap_counts counts;
        for (unsigned i = 0; i < PASSED; i++)
            passed[i] = get(16 + i % 64 * 16);
        count_heap(&counts);
        if (round == 0)
            first = counts.pages.used;
        /* The same blocks again: only the remaining slabs' addresses differ. */
        CHECK(counts.pages.used <= first + first / 20, "%zu pages became %zu", first, counts.pages.used);
        run_thread(free_passed, NULL);
        CHECK_EQUAL(used_bytes(), 0);
        culet_heap_check();
    }
    culet_cache_flush();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        CHECK(counts_of(klass).slabs <= 1, "class %u: %zu slabs", klass, counts_of(klass).slabs);
}

/* A free block in a claimed unit is available to others once the claim ends. */
TEST(blocks_freed_into_a_claimed_unit_come_back)
{
    unsigned klass = culet_size_class(64);
    struct culet_slab *slab;
    void *block[64];

    for (unsigned i = 0; i < 64; i++) /* the whole unit, by and by */
        block[i] = get(64);
    slab = slab_of(block[0]);
    for (unsigned i = 0; i < 63; i++)
        culet_free(block[i]);
    CHECK(slab_of(block[63]) == slab, "a unit is one slab's");
    culet_cache_flush();
    culet_heap_check();
    CHECK_EQUAL(counts_of(klass).live, 1);
    CHECK_EQUAL(counts_of(klass).slabs, 1);
    for (unsigned i = 0; i < 63; i++)
        CHECK(slab_of(get(64)) == slab, "another slab was made though the first has free blocks");
}

static void *use_every_class(void *data)
{
    (void)data;
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        void *block = get(culet_classes[klass].size);
        memset(block, 1, culet_classes[klass].size);
        culet_free(block);
    }
    CHECK(culet_registry_count() >= 1, "this thread has a cache");
    return NULL;
}

TEST(a_thread_that_ends_releases_its_claims)
{
    get(1);
    CHECK_EQUAL(culet_registry_count(), 1);
    size_t before = used_bytes();
    for (unsigned round = 0; round < 50; round++) {
        run_thread(use_every_class, NULL);
        CHECK_EQUAL(culet_registry_count(), 1);
    }
    CHECK_EQUAL(used_bytes(), before);
    for (unsigned klass = 2; klass < CULET_CLASSES; klass++)
        CHECK_EQUAL(counts_of(klass).claimed, 0);
    culet_heap_check();
}

static pthread_key_t late_key;

/* A key's destructor, run in several rounds, so also after the cache's own. */
static void late(void *data)
{
    unsigned rounds = (unsigned)(uintptr_t)data;

    for (size_t bytes = 1; bytes <= 40000; bytes = bytes * 3 + 1) {
        void *block = get(bytes);
        memset(block, 2, bytes);
        block = culet_realloc(block, bytes * 2);
        CHECK(block && *(unsigned char *)block == 2, "realloc lost the contents");
        culet_free(block);
    }
    if (rounds > 1)
        pthread_setspecific(late_key, (void *)(uintptr_t)(rounds - 1));
}

static void *end_late(void *data)
{
    (void)data;
    pthread_setspecific(late_key, (void *)3);
    culet_free(get(10));
    return NULL;
}

TEST(destructors_may_allocate_after_the_cache_is_gone)
{
    get(1);
    CHECK(pthread_key_create(&late_key, late) == 0, "no key");
    size_t before = used_bytes();
    for (unsigned i = 0; i < 20; i++)
        run_thread(end_late, NULL);
    CHECK_EQUAL(used_bytes(), before);
    CHECK_EQUAL(culet_registry_count(), 1);
    culet_heap_check();
}

#define HOLDERS 4
static pthread_barrier_t barrier;

/* Enough blocks for the thread to stop taking them one by one and claim the rest of their unit. */
#define HELD 12

static void *hold_a_unit(void *data)
{
    void *block[HELD];

    (void)data;
    for (unsigned i = 0; i < HELD; i++)
        block[i] = get(64);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < HELD; i++)
        culet_free(block[i]);
    return NULL;
}

/* All free blocks must be given out before a request fails, even those in a unit that another thread has claimed. */
TEST(out_of_memory_means_that_no_block_is_free)
{
    static void *block[200000];
    pthread_t thread[HOLDERS];
    unsigned klass = culet_size_class(64), got = 0;

    pthread_barrier_init(&barrier, NULL, HOLDERS + 1);
    for (unsigned i = 0; i < HOLDERS; i++)
        CHECK(pthread_create(&thread[i], NULL, hold_a_unit, NULL) == 0, "no thread");
    pthread_barrier_wait(&barrier);
    culet_os_refuse = resident_refuse_all;
    while (got < 200000 && (block[got] = culet_malloc(64)))
        got++;
    CHECK(got > 1000 && got < 200000, "%u blocks", got);
    struct bin_counts counts = counts_of(klass);
    CHECK_EQUAL(counts.blocks, counts.live + counts.claimed);

    /* Every block freed can be had again, wherever it lies. */
    unsigned freed = 0, again = 0;
    for (unsigned i = 0; i < got; i += 7, freed++)
        culet_free(block[i]);
    while (culet_malloc(64))
        again++;
    CHECK(again >= freed, "%u blocks were freed, only %u were available again", freed, again);
    culet_os_refuse = NULL;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < HOLDERS; i++)
        pthread_join(thread[i], NULL);
    culet_heap_check();
}

TEST(an_ended_threads_unit_serves_the_others_when_memory_is_out)
{
    pthread_t thread;
    unsigned got = 0;

    pthread_barrier_init(&barrier, NULL, 2);
    get(64);
    CHECK(pthread_create(&thread, NULL, hold_a_unit, NULL) == 0, "no thread");
    pthread_barrier_wait(&barrier);
    culet_os_refuse = resident_refuse_all;
    while (got < 200000 && culet_malloc(64))
        got++;
    CHECK(got > 1000 && got < 200000, "%u blocks", got);
    culet_os_refuse = NULL;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    culet_os_refuse = resident_refuse_all;
    got = 0;
    while (culet_malloc(64))
        got++;
    CHECK(got >= 64, "only %u blocks of the thread's claims were available", got);
    culet_heap_check();
}

#define GIVEN 64
static void *given[GIVEN];

static void *give_a_unit(void *data)
{
    (void)data;
    for (unsigned i = 0; i < GIVEN; i++)
        given[i] = get(64);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* One thread allocates, another frees: the free blocks are in a unit that the first still has claimed, used up. */
TEST(free_blocks_in_a_unit_that_another_thread_holds_are_used_when_memory_is_out)
{
    pthread_t thread;
    unsigned got = 0;

    get(64);
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, give_a_unit, NULL) == 0, "no thread");
    pthread_barrier_wait(&barrier);
    culet_os_refuse = resident_refuse_all;
    while (got < 200000 && culet_malloc(64))
        got++;
    CHECK(got > 1000 && got < 200000, "%u blocks", got);
    for (unsigned i = 0; i < GIVEN; i++)
        culet_free(given[i]);
    got = 0;
    while (culet_malloc(64))
        got++;
    culet_os_refuse = NULL;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    CHECK_EQUAL(got, GIVEN);
    culet_heap_check();
}

/* The state that an unnoticed race of two frees leaves: a block that is free and claimed. */
static void check_ends_in_abort(void (*use)(void *block))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        void *block = get(48);
        struct culet_slab *slab = slab_of(block);
        get(48);
        CHECK(freopen("/dev/null", "w", stderr), "/dev/null");
        uint64_t claimed = atomic_load(&slab->unit[0].claimed);
        CHECK(claimed, "nothing is claimed");
        atomic_fetch_and(&slab->unit[0].live, ~(claimed & -claimed));
        use(block);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(WIFSIGNALED(status), "it ended with wait status 0x%x", (unsigned)status);
}

static void give_back_claims(void *block)
{
    (void)block;
    culet_cache_flush();
}

static void *free_it(void *block)
{
    culet_free(block);
    return NULL;
}

static void free_elsewhere(void *block)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, free_it, block) == 0, "pthread_create");
    pthread_join(thread, NULL);
    culet_cache_flush();
}

TEST(a_block_both_free_and_claimed_is_noticed)
{
    check_ends_in_abort(give_back_claims);
    check_ends_in_abort(free_elsewhere);
}

CHECK_MAIN
