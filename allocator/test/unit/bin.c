/* Bins: the units that requests are served from, frees of other threads, slabs that are destroyed, memory that is out. */
#include "bin.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "pagemap.h"
#include "resident.h"
#include "reclaim_policy.h"
#include "slab.h"
#include "threads.h"
#include "wakeup.h"

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
    atomic_store(&culet_wakeup_large, true);
    void *block = klass > CULET_SIZES ? culet_calloc(1, size) : culet_malloc(size);
    CHECK(block, "no memory");
    return block;
}

TEST(calloc_has_slabs_of_its_own_once_the_heap_is_large)
{
    get(1);
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        size_t size = culet_classes[klass].size;
        atomic_store(&culet_wakeup_large, false);
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

/* The lowest free block of the current unit; then units that frees made available, the oldest first; then a new slab. */
TEST(units_are_used_up_before_others)
{
    static unsigned char *block[CULET_UNIT * 6];
    unsigned klass = culet_size_class(48);

    for (unsigned i = 0; i < CULET_UNIT * 6; i++)
        block[i] = get(48);
    for (unsigned i = 1; i < CULET_UNIT * 6; i++)
        CHECK(block[i] == block[i - 1] + 48, "block %u is not the next one", i);
    struct culet_slab *slab = slab_of(block[0]);
    CHECK(culet_arena(0)->current[klass].slab == slab, "another slab is current");

    culet_free(block[3 * CULET_UNIT + 9]);
    culet_free(block[3 * CULET_UNIT + 5]);
    culet_free(block[1 * CULET_UNIT + 7]);
    CHECK_EQUAL(culet_bin_recents(&culet_arena(0)->bin[klass]), 2);
    culet_heap_check();
    for (unsigned i = culet_classes[klass].count - CULET_UNIT * 6;
         i > 0 && culet_bin_recents(&culet_arena(0)->bin[klass]); i--) {
        unsigned char *next = get(48);
        if (next == block[3 * CULET_UNIT + 5])
            break;
        CHECK(next > block[CULET_UNIT * 6 - 1], "a block of a unit that is not current");
    }
    CHECK(get(48) == block[3 * CULET_UNIT + 9], "not the next block of the oldest recent unit");
    CHECK(get(48) == block[1 * CULET_UNIT + 7], "not the next recent unit");
    culet_heap_check();
}

/* More units than the list of recent ones has places. */
TEST(units_that_are_not_recent_are_available)
{
    enum { UNITS = 3 * CULET_RECENT };
    static void *block[UNITS * CULET_UNIT], *freed[UNITS];
    unsigned klass = culet_size_class(32);

    for (unsigned i = 0; i < UNITS * CULET_UNIT; i++)
        block[i] = get(32);
    for (unsigned u = 0; u < UNITS; u++)
        culet_free(freed[u] = block[u * CULET_UNIT + u]);
    CHECK_EQUAL(culet_bin_recents(&culet_arena(0)->bin[klass]), CULET_RECENT);
    CHECK(culet_arena(0)->bin[klass].first, "no slab is listed");
    culet_heap_check();
    size_t slabs = counts_of(klass).slabs;
    size_t rest = counts_of(klass).blocks - counts_of(klass).live;
    for (size_t i = 0; i < rest; i++)
        get(32);
    CHECK_EQUAL(counts_of(klass).slabs, slabs);
    CHECK_EQUAL(counts_of(klass).live, counts_of(klass).blocks);
    culet_heap_check();
}

TEST(a_trim_leaves_no_slab_without_a_block)
{
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        culet_free(get_of(klass));
    culet_malloc_trim(0);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        CHECK_EQUAL(counts_of(klass).slabs, 0);
    culet_heap_check();
    CHECK_EQUAL(used_bytes(), 0);
    culet_free(get(48)); /* a trimmed heap goes on */
}

/* Fills two slabs, and frees all blocks. */
static void use_two_slabs(size_t bytes)
{
    static void *block[2 * CULET_UNIT * CULET_UNITS];
    unsigned count = 2u * culet_classes[culet_size_class(bytes)].count;

    for (unsigned i = 0; i < count; i++)
        block[i] = get(bytes);
    for (unsigned i = 0; i < count; i++)
        culet_free(block[i]);
}

/* A small heap destroys its idle slabs, but keeps those of a class that gave up its last one often enough. */
TEST(an_idle_slab_is_kept_if_the_program_comes_back_for_it)
{
    unsigned klass = culet_size_class(1024);

    get(1);
    CHECK_EQUAL(atomic_load(&culet_scavenger_state), CULET_SCAVENGER_NONE);
    const struct culet_bin *bin = &culet_arena(0)->bin[klass];
    while (bin->releases < CULET_SMALL_HEAP_SLAB_RELEASES) {
        unsigned before = bin->releases;
        use_two_slabs(1024);
        CHECK(bin->releases > before, "no slab was the class's last one");
        CHECK_EQUAL(counts_of(klass).slabs, 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        use_two_slabs(1024);
        CHECK_EQUAL(counts_of(klass).slabs, 2);
    }
    CHECK_EQUAL(bin->releases, CULET_SMALL_HEAP_SLAB_RELEASES);
    culet_heap_check();
}

/* Where a scavenger runs it decides. */
TEST(a_large_heap_keeps_its_idle_slabs)
{
    get(1);
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        size_t bytes = culet_classes[klass].size;
        atomic_store(&culet_scavenger_state, CULET_SCAVENGER_ASLEEP);
        use_two_slabs(bytes);
        CHECK(counts_of(klass).slabs == 2, "size %zu: %zu slabs", bytes, counts_of(klass).slabs);
        culet_heap_check();
    }
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

/* Frees by the thread that takes the arena over, and by remote words. */
static void pass_blocks(void (*run)(void), bool remote)
{
    size_t first = 0;

    for (unsigned round = 0; round < 6; round++) {
        struct heap_counts counts;
        for (unsigned i = 0; i < PASSED; i++)
            passed[i] = get(16 + i % 64 * 16);
        count_heap(&counts);
        if (round == 0)
            first = counts.pages.used;
        /* Each round has blocks of equal sizes: only the remaining slabs' addresses differ. */
        CHECK(counts.pages.used <= first + first / 20, "%zu pages became %zu", first, counts.pages.used);
        run();
        count_heap(&counts);
        CHECK_EQUAL(counts.used_bytes, 0);
        CHECK((counts.bins[1].remote > 0) == remote, "%zu blocks are not collected", counts.bins[1].remote);
        culet_heap_check();
    }
    culet_malloc_trim(0);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        CHECK_EQUAL(counts_of(klass).slabs, 0);
}

static void free_by_take_over(void)
{
    run_thread(free_passed, NULL);
}

static void free_by_remote_words(void)
{
    run_elsewhere(free_passed, NULL);
}

TEST(blocks_freed_by_another_thread_are_available_to_all)
{
    pass_blocks(free_by_take_over, false);
}

TEST(blocks_freed_by_remote_words_are_available_to_all)
{
    pass_blocks(free_by_remote_words, true);
}

static void *free_them(void *data)
{
    void **block = data;

    for (; *block; block++)
        culet_free(*block);
    return NULL;
}

/* A request collects before it has a slab made, and not while the current unit has free blocks. */
TEST(remote_frees_are_collected_when_the_current_unit_is_used_up)
{
    static void *block[CULET_UNIT * CULET_UNITS + 1];
    unsigned klass = culet_size_class(64), kept = 10;

    culet_heap_setup();
    unsigned count = culet_classes[klass].count;
    for (unsigned i = 0; i < count; i++)
        block[i] = get(64);
    struct culet_slab *slab = slab_of(block[0]);
    struct culet_arena *arena = run_elsewhere(free_them, block + kept);
    CHECK_EQUAL(counts_of(klass).remote, count - kept);
    CHECK_EQUAL(slab->remote_units, (1u << culet_class_units(&culet_classes[klass])) - 1);
    CHECK(atomic_load(&arena->remote) == slab && !slab->next_remote, "the slab was not pushed once");
    culet_heap_check();
    for (unsigned i = kept; i < count; i++)
        CHECK(slab_of(get(64)) == slab, "another slab was made though the first has free blocks");
    CHECK(!atomic_load(&arena->remote) && !slab->remote_units, "the slab is pushed still");
    CHECK_EQUAL(counts_of(klass).remote, 0);
    CHECK(slab_of(get(64)) != slab, "a block was given out twice");
    culet_heap_check();
}

static pthread_barrier_t turn;

/* As if the first arena had looked for blocks in the other one since that changed last. */
static void look_at(struct culet_arena *other)
{
    culet_arena(0)->seen[other->number] = atomic_load(&other->changes);
}

static void *lose_current(void *data)
{
    struct culet_slab **slab = data;

    *slab = slab_of(get(64));
    struct culet_arena *arena = atomic_load(&culet_thread.arena);
    CHECK(arena->current[culet_size_class(64)].slab == *slab, "the slab is not current");
    unsigned acquisitions = culet_thread.acquisitions;
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    get(2000);
    CHECK(atomic_load(&culet_thread.arena) == arena, "the thread did not get its arena again");
    CHECK_EQUAL(culet_thread.acquisitions, acquisitions);
    return NULL;
}

/* Also one that has the free blocks of the current unit only. Its holder goes on in the same arena. */
TEST(another_arenas_current_slab_is_adopted)
{
    pthread_t thread;
    struct culet_slab *slab;

    culet_heap_setup();
    CHECK(pthread_barrier_init(&turn, NULL, 2) == 0, "no barrier");
    struct culet_arena *arena = culet_arena_enter();
    CHECK(pthread_create(&thread, NULL, lose_current, &slab) == 0, "no thread");
    pthread_barrier_wait(&turn);
    culet_arena_leave(arena);
    CHECK_EQUAL(atomic_load(&slab->span.arena), 1);
    look_at(culet_arena(1));
    CHECK(slab_of(get(64)) == slab, "a slab was created");
    CHECK_EQUAL(atomic_load(&slab->span.arena), 0);
    CHECK_EQUAL(atomic_load(&culet_arena(1)->bin[culet_size_class(64)].adoptions), 1);
    pthread_barrier_wait(&turn);
    CHECK(pthread_join(thread, NULL) == 0, "no end of the thread");
    culet_heap_check();
}

/* Of a class that nothing else uses. */
static void *leave_a_block(void *data)
{
    struct culet_slab **slab = data;

    *slab = slab_of(get(976));
    CHECK((*slab)->span.arena != 0, "the thread has the first arena");
    return NULL;
}

/* Fills two slabs, begins a third, and frees one block of the first, then all but one of the second. */
static void *leave_two_slabs(void *data)
{
    static void *block[3 * CULET_UNITS * CULET_UNIT];
    struct culet_slab **slab = data;
    unsigned count = culet_classes[culet_size_class(976)].count;

    for (unsigned i = 0; i < 2 * count + 2; i++)
        block[i] = get(976);
    slab[0] = slab_of(block[0]);
    slab[1] = slab_of(block[count]);
    culet_free(block[0]);
    for (unsigned i = count + 1; i < 2 * count; i++)
        culet_free(block[i]);
    return NULL;
}

TEST(the_freest_of_another_arenas_slabs_is_adopted)
{
    struct culet_slab *slab[2];

    get(1);
    run_elsewhere(leave_two_slabs, slab);
    look_at(culet_arena(1));
    CHECK(slab_of(get(976)) == slab[1], "another slab than the one with most free blocks was adopted");
    CHECK_EQUAL(slab[0]->span.arena, 1);
    CHECK_EQUAL(slab[1]->span.arena, 0);
    culet_heap_check();
}

/* An arena that has changed since the last look keeps its slabs. */
TEST(an_arena_in_use_is_left_alone)
{
    struct culet_slab *others, *own;

    get(1);
    unsigned count = culet_classes[culet_size_class(976)].count;
    run_elsewhere(leave_a_block, &others);
    own = slab_of(get(976));
    CHECK(own != others && own->span.arena == 0, "the slab of an arena in use was adopted");
    for (unsigned i = 1; i < count; i++)
        CHECK(slab_of(get(976)) == own, "another slab");
    CHECK(slab_of(get(976)) == others, "the slab of an arena that is not in use was not adopted");
    CHECK_EQUAL(others->span.arena, 0);
    culet_heap_check();
}

/* Slabs whose last block was freed by another thread are destroyed by the one that collects. */
TEST(slabs_that_other_threads_freed_are_destroyed)
{
    static void *block[50001];
    struct heap_counts counts;

    for (unsigned i = 0; i < 50000; i++)
        block[i] = get(100);
    run_elsewhere(free_them, block);
    count_heap(&counts);
    size_t before = counts.pages.used;
    /* In a class of its own, which has no unit yet. */
    get(2000);
    count_heap(&counts);
    CHECK(counts.pages.used < before / 10, "of %zu pages %zu are used", before, counts.pages.used);
    culet_heap_check();
}

static void *use_every_class(void *data)
{
    (void)data;
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        void *block = get(culet_classes[klass].size);
        memset(block, 1, culet_classes[klass].size);
        culet_free(block);
    }
    CHECK(culet_arena_threads() >= 1, "this thread is not counted");
    return NULL;
}

TEST(the_next_thread_uses_what_an_ended_one_left)
{
    /* A scavenger holds the arena now and then. */
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
    get(1);
    CHECK_EQUAL(culet_arena_threads(), 1);
    size_t before = used_bytes();
    for (unsigned round = 0; round < 50; round++) {
        run_thread(use_every_class, NULL);
        CHECK_EQUAL(culet_arena_threads(), 1);
    }
    CHECK_EQUAL(culet_arena_count(), 1);
    CHECK_EQUAL(used_bytes(), before);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        CHECK(counts_of(klass).slabs <= 1, "class %u: %zu slabs", klass, counts_of(klass).slabs);
    culet_heap_check();
}

static pthread_key_t late_key;

/* A key's destructor, run in several rounds, so also after the one of the arenas. */
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

TEST(destructors_may_allocate_after_the_thread_is_unregistered)
{
    get(1);
    CHECK(pthread_key_create(&late_key, late) == 0, "no key");
    size_t before = used_bytes();
    for (unsigned i = 0; i < 20; i++)
        run_thread(end_late, NULL);
    CHECK_EQUAL(used_bytes(), before);
    CHECK_EQUAL(culet_arena_threads(), 1);
    culet_heap_check();
}

/* All free blocks must be given out before a request fails. */
TEST(out_of_memory_means_that_no_block_is_free)
{
    static void *block[200000];
    unsigned klass = culet_size_class(64), got = 0;

    get(64);
    culet_os_refuse = resident_refuse_all;
    while (got < 200000 && (block[got] = culet_malloc(64)))
        got++;
    CHECK(got > 1000 && got < 200000, "%u blocks", got);
    CHECK_EQUAL(counts_of(klass).blocks, counts_of(klass).live);

    /* Every block freed can be had again, wherever it lies. */
    unsigned freed = 0, again = 0;
    for (unsigned i = 0; i < got; i += 7, freed++)
        culet_free(block[i]);
    while (culet_malloc(64))
        again++;
    CHECK_EQUAL(again, freed);
    culet_os_refuse = NULL;
    culet_heap_check();
}

static unsigned got_here;

static void *use_memory_up(void *unused)
{
    for (unsigned i = 0; i < CULET_UNIT / 2; i++)
        get(64);
    culet_os_refuse = resident_refuse_all;
    while (got_here < 200000 && culet_malloc(64))
        got_here++;
    return unused;
}

TEST(an_ended_threads_unit_serves_the_others_when_memory_is_out)
{
    get(1);
    run_thread(use_memory_up, NULL);
    CHECK(got_here > 1000 && got_here < 200000, "%u blocks", got_here);
    CHECK_EQUAL(counts_of(culet_size_class(64)).live, counts_of(culet_size_class(64)).blocks);
    CHECK(!culet_malloc(64), "a block out of nothing");
    culet_os_refuse = NULL;
    void *kept = get(64);
    culet_free(kept);
    culet_heap_check();
}

/* One thread allocates, another frees by remote words: the first gets all of it again. */
TEST(remotely_freed_blocks_are_used_when_memory_is_out)
{
    static void *block[200001];
    unsigned got = 0, again = 0;

    get(64);
    run_elsewhere(use_every_class, NULL); /* the other arena has to exist */
    culet_os_refuse = resident_refuse_all;
    while (got < 200000 && (block[got] = culet_malloc(64)))
        got++;
    CHECK(got > 1000 && got < 200000, "%u blocks", got);
    run_elsewhere(free_them, block + got - 100);
    while (culet_malloc(64))
        again++;
    CHECK_EQUAL(again, 100);
    culet_os_refuse = NULL;
    culet_heap_check();
}

/* The state that an unnoticed race of two frees leaves: a block that is free and freed remotely. */
TEST(a_block_freed_twice_at_once_is_noticed_when_it_is_collected)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        static void *block[CULET_UNIT + 2];
        for (unsigned i = 0; i <= CULET_UNIT; i++)
            block[i] = get(48);
        struct culet_slab *slab = slab_of(block[5]);
        struct culet_unit *unit = &slab->unit[culet_block_unit(culet_slab_index(slab, (uintptr_t)block[5]).block)];
        CHECK(freopen("/dev/null", "w", stderr), "/dev/null");
        block[6] = NULL;
        run_elsewhere(free_them, block + 5);
        atomic_fetch_or(&unit->free, culet_block_bit(culet_slab_index(slab, (uintptr_t)block[5]).block));
        culet_malloc_trim(0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it ended with wait status 0x%x", (unsigned)status);
}

/* ---- frees of other threads at every moment ---- */

/* A slab of 64-byte blocks, all live; of arena 0, which this thread holds. */
static struct culet_slab *full_slab(void **block)
{
    culet_heap_setup();
    unsigned count = culet_classes[culet_size_class(64)].count;

    for (unsigned i = 0; i < count; i++)
        block[i] = get(64);
    CHECK(slab_of(block[0]) == slab_of(block[count - 1]), "the blocks are in two slabs");
    return slab_of(block[0]);
}

/* What a remote free does before it pushes the slab, as far as its thread has come. */
static void begin_remote_free(struct culet_slab *slab, uint32_t block, bool marks)
{
    CHECK(!(atomic_fetch_or(&slab->unit[culet_block_unit(block)].remote, culet_block_bit(block))), "not the first one");
    if (marks)
        CHECK(!atomic_fetch_or(&slab->remote_units, (uint16_t)(1u << culet_block_unit(block))), "not the first mark");
}

static void push(struct culet_arena *arena, struct culet_slab *slab)
{
    slab->next_remote = atomic_load(&arena->remote);
    atomic_store(&arena->remote, slab);
}

static pthread_barrier_t met;

static void *allocate(void *waits)
{
    culet_free(get(48));
    if (waits) {
        pthread_barrier_wait(&met);
        pthread_barrier_wait(&met);
    }
    return NULL;
}

#ifndef __SANITIZE_THREAD__ /* it does not support forks of a process with threads */
/* The thread that frees does not exist in the child, so nobody marks the unit or pushes the slab there. */
static void fork_in_a_remote_free(bool marks)
{
    static void *block[CULET_UNIT * CULET_UNITS];
    uint64_t bit = culet_block_bit(70);
    pthread_t thread;

    CHECK(pthread_barrier_init(&met, NULL, 2) == 0, "no barrier");
    CHECK(pthread_create(&thread, NULL, allocate, &met) == 0, "no thread");
    pthread_barrier_wait(&met);
    struct culet_slab *slab = full_slab(block);
    begin_remote_free(slab, 70, marks);
    pid_t child = fork();
    if (child == 0) {
        CHECK(atomic_load(&slab->unit[1].free) == bit && !atomic_load(&slab->unit[1].remote),
              "the block is not free in the child");
        culet_heap_check();
        CHECK(get(64) == block[70], "the child does not hand the block out");
        for (unsigned i = 0; i < culet_classes[slab->span.klass].count; i++)
            culet_free(block[i]);
        culet_malloc_trim(0);
        CHECK_EQUAL(counts_of(culet_size_class(64)).slabs, 0);
        _exit(0);
    }
    check_child(child);
    CHECK_EQUAL(atomic_load(&slab->unit[1].remote), bit);
    pthread_barrier_wait(&met);
    pthread_join(thread, NULL);
}

TEST(a_child_collects_a_remote_free_without_a_mark)
{
    fork_in_a_remote_free(false);
}

TEST(a_child_collects_a_remote_free_of_a_slab_that_is_not_pushed)
{
    fork_in_a_remote_free(true);
}
#endif

/* Without another thread that has allocated and not ended, no free is half done: this one is found by no walk. */
TEST(a_child_of_a_single_thread_does_not_visit_the_slabs)
{
    static void *block[CULET_UNIT * CULET_UNITS];
    struct culet_slab *slab = full_slab(block);

    run_thread(allocate, NULL); /* libc does not take the process for one with a single thread */
    begin_remote_free(slab, 70, false);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(atomic_load(&slab->unit[1].remote), culet_block_bit(70));
        _exit(0);
    }
    check_child(child);
}

/* Every remote free of the program passes here. */
bool __real_culet_bin_free_remote(struct culet_slab *slab, size_t block);
bool __wrap_culet_bin_free_remote(struct culet_slab *slab, size_t block);
static unsigned frees_inside;

bool __wrap_culet_bin_free_remote(struct culet_slab *slab, size_t block)
{
    frees_inside += atomic_load(&culet_thread.busy) == CULET_INSIDE;
    return __real_culet_bin_free_remote(slab, block);
}

static void *end_with_a_free(void *block)
{
    culet_thread.life = CULET_THREAD_ENDING;
    culet_free(block);
    return NULL;
}

/* A child does not know of a thread that is about to end, so the fork waits for its free. */
TEST(an_ending_thread_frees_remotely_inside_an_arena)
{
    run_elsewhere(end_with_a_free, get(48));
    CHECK_EQUAL(frees_inside, 1);
}

static void *leave_a_slab(void *data)
{
    void **block = data;
    struct culet_slab *slab = full_slab(block);

    CHECK(slab->span.arena != 0, "the thread has the first arena");
    /* Another slab has the current unit: with that it would stay. */
    static void *others[CULET_UNIT * CULET_UNITS];
    full_slab(others);
    for (unsigned i = 0; i < CULET_UNIT; i++)
        culet_free(block[i]);
    return NULL;
}

/* The freeing thread read the arena's number before the slab was moved, and pushes it afterwards. */
TEST(a_slab_on_its_former_arenas_stack_is_passed_on)
{
    static void *block[CULET_UNIT * CULET_UNITS];

    get(1);
    run_elsewhere(leave_a_slab, block);
    struct culet_slab *slab = slab_of(block[0]);
    struct culet_arena *former = culet_arena(slab->span.arena), *arena = culet_arena(0);
    look_at(former);
    for (unsigned i = 0; i < CULET_UNIT; i++) /* this thread's arena has no such slab, and takes this one */
        CHECK(slab_of(block[i] = get(64)) == slab, "a new slab was made");
    CHECK(slab->span.arena == 0 && former != arena, "the slab was not moved");

    begin_remote_free(slab, 100, true);
    push(former, slab);
    culet_heap_check();
    CHECK(culet_arena_enter_for_purge(former), "a thread is inside the former arena");
    culet_bin_collect(former);
    culet_arena_leave_after_purge(former);
    CHECK(atomic_load(&arena->remote) == slab && !atomic_load(&former->remote), "the slab was not passed on");
    CHECK_EQUAL(counts_of(culet_size_class(64)).remote, 1);
    culet_heap_check();
    CHECK(get(64) == block[100], "the block is not handed out");
    culet_heap_check();
}

/* Two frees of one block at the same moment. The second thread's part is done by a signal handler: the first one reads
 * the unit's words, and its store is a fault, because the slab's descriptor is not writable. */
static struct {
    struct culet_slab *slab;
    uint32_t block;
    void (*free)(void);
    unsigned faults;
} other;

static void make_descriptor(int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)other.slab & ~(page - 1);

    CHECK(mprotect((void *)from, (uintptr_t)(other.slab + 1) - from, protection) == 0, "mprotect");
}

static void at_the_store(int signal, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)other.slab;

    (void)signal;
    (void)context;
    CHECK(at >= offsetof(struct culet_slab, unit) && at < sizeof *other.slab && !other.faults++, "another fault");
    make_descriptor(PROT_READ | PROT_WRITE);
    other.free();
}

static void free_by_the_holder(void)
{
    _Atomic uint64_t *word = &other.slab->unit[culet_block_unit(other.block)].free;

    atomic_store(word, atomic_load(word) | culet_block_bit(other.block));
}

static void free_remotely(void)
{
    CHECK(culet_bin_free_remote(other.slab, other.block), "the other thread's free was the first");
}

static void prepare_two_frees(struct culet_slab *slab, uint32_t block, void (*other_free)(void))
{
    struct sigaction action = {.sa_sigaction = at_the_store, .sa_flags = SA_SIGINFO};

    other.slab = slab;
    other.block = block;
    other.free = other_free;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    make_descriptor(PROT_READ);
}

TEST(a_remote_free_sees_the_holders)
{
    static void *block[CULET_UNIT * CULET_UNITS];

    prepare_two_frees(full_slab(block), 70, free_by_the_holder);
    CHECK(!culet_bin_free_remote(other.slab, other.block), "the second free was not noticed");
    CHECK_EQUAL(other.faults, 1);
}

/* In a child, which the free aborts. */
static void check_holders_free(size_t bytes, uint32_t (*choose)(const struct culet_class *))
{
    static void *block[CULET_UNIT * CULET_UNITS];
    int status;

    culet_heap_setup();
    const struct culet_class *c = &culet_classes[culet_size_class(bytes)];
    pid_t child = fork();

    if (child == 0) {
        for (unsigned i = 0; i < c->count; i++)
            block[i] = get(bytes);
        CHECK(freopen("/dev/null", "w", stderr), "/dev/null");
        prepare_two_frees(slab_of(block[0]), choose(c), free_remotely);
        culet_free(block[other.block]);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it ended with wait status 0x%x", (unsigned)status);
}

static uint32_t in_a_whole_unit(const struct culet_class *c)
{
    (void)c;
    return 2;
}

static uint32_t in_the_short_unit(const struct culet_class *c)
{
    CHECK(c->count % CULET_UNIT, "the class has no short unit");
    return c->count - 1u;
}

TEST(the_holders_free_sees_a_remote_one)
{
    check_holders_free(64, in_a_whole_unit);
}

TEST(the_holders_free_in_a_short_unit_sees_a_remote_one)
{
    check_holders_free(3000, in_the_short_unit);
}

CHECK_MAIN
