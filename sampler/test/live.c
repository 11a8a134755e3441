/* The table of live samples: against a naive one, and while other threads look into it. */
#include "live.h"

#include "check.h"

#include <pthread.h>

#define BLOCKS 5000

/* Distinct and aligned; many of a table's first slots are the same, or neighbours. */
static void *block(uint64_t number)
{
    return (void *)(uintptr_t)((number + 1) << 4);
}

/* Numbers of samples of the blocks that are in the table; 0: not there. */
static uint32_t model[BLOCKS];

static size_t model_count(void)
{
    size_t count = 0;

    for (unsigned i = 0; i < BLOCKS; i++)
        count += model[i] != 0;
    return count;
}

static void check_all(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK(culet_live_has(block(i)) == (model[i] != 0), "block %u, sample %u", i, model[i]);
    CHECK_EQUAL(culet_live_count(), model_count());
}

TEST(an_empty_table_has_nothing)
{
    CHECK(!culet_live_has(NULL) && !culet_live_has(block(1)), "it has a block");
    CHECK_EQUAL(culet_live_remove(block(1)), 0);
    CHECK_EQUAL(culet_live_count(), 0);
}

/* Adds, replaces and removes at random; at most `most` blocks are in the table at a time. */
static void compare(unsigned blocks, unsigned steps, size_t most)
{
    uint64_t state = blocks;
    size_t count = 0;

    for (unsigned step = 1; step <= steps; step++) {
        unsigned i = (unsigned)(check_random(&state) % blocks);
        uint32_t before;
        if ((check_random(&state) & 1) && (model[i] || count < most)) {
            CHECK(culet_live_add(block(i), step, &before), "no memory");
            CHECK_EQUAL(before, model[i]);
            count += !model[i];
            model[i] = step;
        } else {
            CHECK_EQUAL(culet_live_remove(block(i)), model[i]);
            count -= model[i] != 0;
            model[i] = 0;
        }
        if (step % 997 == 0)
            check_all();
    }
    check_all();
}

TEST(random_changes_agree_with_a_naive_table)
{
    compare(64, 20000, 64);
    compare(BLOCKS, 300000, BLOCKS);
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK_EQUAL(culet_live_remove(block(i)), model[i]);
    CHECK_EQUAL(culet_live_count(), 0);
}

/* Runs of neighbours in the table: blocks whose first slots are the same or next to each other. */
TEST(blocks_of_one_slot)
{
    void *near[200];
    unsigned found = 0;
    uint64_t state = 1;
    uint32_t before;

    CHECK(culet_live_add(block(0), 1, &before), "no memory");
    struct culet_live_table *table = atomic_load(&culet_live.table);
    size_t last = ((size_t)1 << table->bits) - 1;
    for (uint64_t i = 1; found < 200; i++)
        if (culet_live_first_slot(table, (uintptr_t)block(i)) >= last - 2 ||
            culet_live_first_slot(table, (uintptr_t)block(i)) <= 1)
            near[found++] = block(i);
    bool there[200] = {false};
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = (unsigned)(check_random(&state) % 200);
        if (there[i])
            CHECK_EQUAL(culet_live_remove(near[i]), i + 1);
        else
            CHECK(culet_live_add(near[i], i + 1, &before) && !before, "not added");
        there[i] = !there[i];
        for (unsigned k = 0; k < 200; k++)
            CHECK(culet_live_has(near[k]) == there[k], "block %u at step %u", k, step);
    }
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 3000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned maybe;

/* Each thread has blocks of its own, among the others' slots, and frees what it has added. */
static void *use(void *data)
{
    uint64_t thread = (uintptr_t)data, state = thread + 1;
    bool there[300] = {false};

    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (unsigned)(check_random(&state) % 300);
        void *mine = block(i * THREADS + thread);
        uint32_t before, number = (uint32_t)(round * THREADS + thread + 1);
        for (unsigned k = 0; k < 20; k++) {
            unsigned look = (unsigned)(check_random(&state) % 300);
            bool has = culet_live_has(block(look * THREADS + thread));
            CHECK(has || !there[look], "a block is not found");
            if (has && !there[look])
                atomic_fetch_add(&maybe, 1);
        }
        pthread_mutex_lock(&lock);
        if (there[i])
            CHECK(culet_live_remove(mine), "it was not there");
        else
            CHECK(culet_live_add(mine, number, &before) && !before, "not added");
        pthread_mutex_unlock(&lock);
        there[i] = !there[i];
    }
    for (unsigned i = 0; i < 300; i++) {
        pthread_mutex_lock(&lock);
        CHECK((culet_live_remove(block(i * THREADS + thread)) != 0) == there[i], "block %u", i);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

TEST(a_block_is_found_while_others_come_and_go)
{
    pthread_t thread[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, use, (void *)i) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(culet_live_count(), 0);
    /* A look takes the lock without need only while something is removed. */
    CHECK(atomic_load(&maybe) < THREADS * ROUNDS * 20 / 2, "%u looks of no use", atomic_load(&maybe));
}

CHECK_MAIN
