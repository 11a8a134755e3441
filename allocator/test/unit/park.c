/* Parked blocks: handed out again, last first; known as free; given back by flush, trim, thread's end, idleness, fork. */
#define _GNU_SOURCE
#include "bell.h"
#include "bias.h"
#include "cache.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "pagemap.h"
#include "park.h"

#include <pthread.h>

#define BYTES 64
#define TURN 1000

static unsigned klass_of(size_t bytes)
{
    return culet_size_class(bytes);
}

static uint64_t parked_of(size_t bytes)
{
    return culet_park_count(&culet_cache->park[klass_of(bytes)]);
}

static void *get(size_t bytes)
{
    void *block = culet_malloc(bytes);

    CHECK(block, "no memory for %zu bytes", bytes);
    return block;
}

static bool is_live(void *block)
{
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    const struct culet_class *c = &culet_classes[culet_entry_class(entry)];

    return culet_slab_is_live(culet_entry_slab(entry), culet_slab_spot(c, culet_entry_offset(entry, (uintptr_t)block)));
}

static size_t used_bytes(void)
{
    struct culet_figures figures;

    culet_heap_check();
    culet_heap_figures(&figures);
    return figures.used_bytes;
}

static size_t held_blocks(size_t bytes)
{
    struct culet_figures figures;

    culet_heap_figures(&figures);
    return figures.bins[klass_of(bytes)].claimed;
}

static void *block[TURN];

/* Makes the calling thread the heap's owner, if the kernel lets it. */
static void work(void)
{
    for (unsigned i = 0; i < TURN; i++)
        block[i] = get(BYTES * 15);
    for (unsigned i = 0; i < TURN; i++)
        culet_free(block[i]);
}

/* Before anything else: threads park from now on, as in a program that has been running for a while. */
static void begin(void)
{
    culet_free(get(1));
    culet_size_class_park();
}

static void *use_the_heap(void *unused)
{
    culet_free(get(1));
    return unused;
}

static pthread_t start(void *(*run)(void *), void *data)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run, data) == 0, "no thread");
    return thread;
}

/* Ends the bias: only threads that share the heap park. */
static void share(void)
{
    pthread_join(start(use_the_heap, NULL), NULL);
    CHECK(atomic_load(&culet_bias_owner) != culet_cache, "the heap is not shared");
}

TEST(the_last_block_parked_is_the_first_handed_out)
{
    void *freed[CULET_PARK];

    begin();
    for (unsigned i = 0; i < CULET_PARK; i++)
        freed[i] = get(BYTES);
    /* Of units that are full and not this thread's claim. */
    for (unsigned i = 0; i < 64; i++)
        get(BYTES);
    share();
    for (unsigned i = 0; i < CULET_PARK; i++) {
        culet_free(freed[i]);
        CHECK(!is_live(freed[i]), "a parked block counts as the program's");
    }
    CHECK_EQUAL(parked_of(BYTES), CULET_PARK);
    culet_heap_check();
    /* A claim's blocks come first. */
    void *again = get(BYTES);
    while (parked_of(BYTES) == CULET_PARK)
        again = get(BYTES);
    for (unsigned i = CULET_PARK; i-- > 0; again = i ? get(BYTES) : NULL) {
        CHECK(again == freed[i], "%p is handed out before %p", again, freed[i]);
        CHECK(is_live(again), "what was handed out counts as free");
    }
    culet_heap_check();
}

TEST(the_heaps_owner_parks_nothing_and_takes_what_it_parked_before)
{
    void *kept[200], *parked;

    begin();
    share();
    for (unsigned i = 0; i < 200; i++)
        kept[i] = get(BYTES);
    culet_free(parked = kept[0]);
    CHECK_EQUAL(parked_of(BYTES), 1);
    work();
    if (atomic_load(&culet_bias_owner) != culet_cache)
        return; /* without the kernel's barrier there is no owner */
    culet_free(kept[100]);
    culet_free(kept[1]);
    CHECK_EQUAL(parked_of(BYTES), 1);
    void *again = get(BYTES);
    for (unsigned i = 0; i < 200 && parked_of(BYTES); i++)
        again = get(BYTES);
    CHECK(again == parked, "what was parked is lost");
    culet_heap_check();
}

TEST(a_program_that_only_starts_up_parks_nothing)
{
    for (unsigned i = 0; i < TURN; i++)
        block[i] = get(BYTES);
    for (unsigned i = 0; i < TURN; i++)
        culet_free(block[i]);
    CHECK_EQUAL(parked_of(BYTES), 0);
    /* Of large blocks each request is one by the slow path. */
    for (unsigned i = 0; i < 10000; i++)
        culet_free(get(30000));
    for (unsigned i = 0; i < 128; i++)
        block[i] = get(BYTES);
    share();
    culet_free(block[0]);
    CHECK_EQUAL(parked_of(BYTES), 1);
}

TEST(no_more_are_parked_than_the_class_allows)
{
    begin();
    for (size_t bytes = 16; bytes <= CULET_SMALL_MAX; bytes += bytes / 2) {
        const struct culet_class *c = &culet_classes[klass_of(bytes)];
        for (unsigned i = 0; i < TURN; i++)
            block[i] = get(bytes);
        share();
        for (unsigned i = 0; i < TURN; i++)
            culet_free(block[i]);
        CHECK_EQUAL(parked_of(bytes), c->parks);
        CHECK(c->parks <= CULET_PARK && (size_t)c->parks * c->size <= 8192, "%u of %u bytes", c->parks, c->size);
    }
    culet_heap_check();
}

TEST(the_figures_count_a_parked_block_as_held_not_as_used)
{
    begin();
    culet_cache_flush();
    size_t before = used_bytes();
    void *one = get(4000), *other = get(4000);
    share();
    size_t held = held_blocks(4000);
    culet_free(one);
    CHECK_EQUAL(held_blocks(4000), held + 1);
    culet_free(other);
    CHECK_EQUAL(used_bytes(), before);
}

static pthread_barrier_t stage;

/* Few enough that there is nothing to tidy, which would empty the parks. */
#define FIRST_CLASS 8
#define CLASSES 8

static void *park_and_wait(void *parks)
{
    for (unsigned klass = FIRST_CLASS; klass < FIRST_CLASS + CLASSES; klass++) {
        void *mine[CULET_PARK];
        for (unsigned i = 0; i < CULET_PARK; i++)
            mine[i] = get(culet_classes[klass].size);
        for (unsigned i = 0; i < CULET_PARK; i++)
            culet_free(mine[i]);
        *(size_t *)parks += culet_park_count(&culet_cache->park[klass]);
    }
    pthread_barrier_wait(&stage);
    pthread_barrier_wait(&stage);
    for (unsigned klass = FIRST_CLASS; klass < FIRST_CLASS + CLASSES; klass++)
        culet_free(get(culet_classes[klass].size));
    return NULL;
}

static size_t held_by_all(void)
{
    struct culet_figures figures;
    size_t held = 0;

    culet_heap_figures(&figures);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        held += figures.bins[klass].claimed;
    return held;
}

static void with_a_thread_that_parks(void (*run)(size_t parked))
{
    size_t parked = 0;

    begin();
    pthread_barrier_init(&stage, NULL, 2);
    pthread_t thread = start(park_and_wait, &parked);
    pthread_barrier_wait(&stage);
    CHECK(parked >= CLASSES, "the thread has parked %zu blocks", parked);
    run(parked);
    pthread_barrier_wait(&stage);
    pthread_join(thread, NULL);
    culet_heap_check();
}

static void nothing(void)
{
}

static void trim(size_t parked)
{
    size_t before = held_by_all();

    culet_malloc_trim(0);
    CHECK(held_by_all() + parked <= before, "%zu blocks were held, %zu of them parked, %zu are", before, parked,
          held_by_all());
    culet_heap_check();
}

TEST(a_trim_takes_what_other_threads_have_parked)
{
    CHECK(get(1), "the heap is set up");
    if (!culet_bias_alone(nothing))
        return; /* without the kernel's barrier only their own threads may */
    with_a_thread_that_parks(trim);
}

static void fork_there(size_t parked)
{
    size_t before = held_by_all(), used = used_bytes();
    pid_t child = fork();

    if (child == 0) {
        CHECK(held_by_all() + parked <= before, "%zu blocks were held, %zu of them parked, %zu are in the child",
              before, parked, held_by_all());
        CHECK_EQUAL(used_bytes(), used);
        work();
        CHECK_EQUAL(used_bytes(), used);
        _exit(0);
    }
    check_child(child);
    CHECK_EQUAL(held_by_all(), before);
}

TEST(a_forked_child_frees_what_threads_it_does_not_have_had_parked)
{
    with_a_thread_that_parks(fork_there);
}

TEST(a_forked_child_keeps_what_its_own_thread_has_parked)
{
    begin();
    void *one = get(4000);
    share();
    culet_free(one);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(parked_of(4000), 1);
        CHECK(get(4000) == one, "another block was handed out");
        culet_free(one);
        culet_heap_check();
        _exit(0);
    }
    check_child(child);
    CHECK(get(4000) == one, "the parent lost it");
}

static void *park_and_end(void *unused)
{
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++)
        culet_free(get(culet_classes[klass].size));
    return unused;
}

TEST(a_thread_that_ends_leaves_nothing_parked)
{
    begin();
    culet_cache_flush();
    size_t before = held_by_all();
    for (unsigned i = 0; i < 10; i++)
        pthread_join(start(park_and_end, NULL), NULL);
    CHECK_EQUAL(held_by_all(), before);
    culet_heap_check();
}

static void ask_twice(size_t parked)
{
    size_t before = held_by_all();

    culet_cache_empty_parks(false); /* takes note of the visits */
    CHECK(culet_cache_empty_parks(false), "a thread that did nothing is not idle");
    CHECK(held_by_all() + parked <= before, "%zu blocks were held, %zu are", before, held_by_all());
    CHECK(!culet_cache_empty_parks(false), "there is still something parked");
    culet_heap_check();
}

TEST(an_idle_threads_parks_are_emptied)
{
    CHECK(get(1), "the heap is set up");
    if (culet_bias_alone(nothing))
        with_a_thread_that_parks(ask_twice);
}

/* ---- while all of this happens at once ---- */

#define THREADS 4
static _Atomic bool done;
static _Atomic unsigned rounds;

static void *replace(void *data)
{
    uint64_t seed = (uintptr_t)data + 1;
    unsigned char *mine[64] = {0};

    while (!atomic_load(&done)) {
        unsigned i = (unsigned)check_random(&seed) % 64;
        size_t bytes = 16 + check_random(&seed) % 600;
        if (mine[i]) {
            CHECK(mine[i][0] == i && mine[i][15] == (unsigned char)(uintptr_t)data, "a block was given twice");
            mine[i][0] = 99;
            culet_free(mine[i]);
        }
        mine[i] = get(bytes);
        mine[i][0] = (unsigned char)i;
        mine[i][15] = (unsigned char)(uintptr_t)data;
        atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
    }
    for (unsigned i = 0; i < 64; i++)
        culet_free(mine[i]);
    return NULL;
}

TEST(parks_are_emptied_while_their_threads_use_them)
{
    pthread_t thread[THREADS];

    begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        thread[i] = start(replace, (void *)i);
    for (unsigned i = 0; i < 300 || atomic_load(&rounds) < 100000; i++) {
        culet_cache_empty_parks(i % 2);
        if (i % 64 == 0) {
            pid_t child = fork();
            if (child == 0) {
                culet_heap_check();
                work();
                culet_heap_check();
                _exit(0);
            }
            check_child(child);
        }
    }
    atomic_store(&done, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    culet_cache_flush();
    CHECK_EQUAL(used_bytes(), 0);
}

CHECK_MAIN
