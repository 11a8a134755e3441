/* The lock: one holder at a time, sleepers wake, and locks are open to the forking thread. */
#include "lock.h"
#include "check.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 8

static struct culet_lock lock;
static uint64_t counter; /* not atomic: the lock guards it */
static _Atomic unsigned inside;

static void *count(void *data)
{
    unsigned rounds = *(unsigned *)data;

    for (unsigned i = 0; i < rounds; i++) {
        culet_lock(&lock);
        CHECK(atomic_fetch_add(&inside, 1) == 0, "two hold the lock");
        counter++;
        if (i % 64 == 0)
            sched_yield(); /* the others find the lock held, and sleep */
        atomic_fetch_sub(&inside, 1);
        culet_unlock(&lock);
    }
    return NULL;
}

TEST(one_holder_at_a_time)
{
    pthread_t thread[THREADS];
    unsigned rounds = 20000;

    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, count, &rounds) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(counter, (uint64_t)THREADS * rounds);
    CHECK_EQUAL(lock.state, 0);
}

static _Atomic unsigned woken;

static void *wait_once(void *data)
{
    (void)data;
    culet_lock(&lock);
    atomic_fetch_add(&woken, 1);
    culet_unlock(&lock);
    return NULL;
}

TEST(all_sleepers_wake)
{
    pthread_t thread[THREADS];

    culet_lock(&lock);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, wait_once, NULL) == 0, "no thread");
    while (!(atomic_load(&lock.state) & CULET_LOCK_WAITERS))
        usleep(1000);
    usleep(20000); /* long enough for the others to sleep too; the test holds if they do not */
    CHECK_EQUAL(woken, 0);
    culet_unlock(&lock);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(woken, THREADS);
    CHECK_EQUAL(lock.state, 0);
}

static _Atomic bool through;

static void *take_it(void *data)
{
    (void)data;
    culet_lock(&lock);
    through = true;
    culet_unlock(&lock);
    return NULL;
}

TEST(the_forking_thread_passes_and_the_others_wait)
{
    pthread_t thread;

    culet_lock(&lock);
    culet_lock_fork_begin();
    CHECK(culet_lock_forking(), "this is the forking thread");
    culet_lock(&lock);
    culet_unlock(&lock);
    CHECK(lock.state != 0, "passing must not open the lock");
    CHECK(pthread_create(&thread, NULL, take_it, NULL) == 0, "no thread");
    while (!(atomic_load(&lock.state) & CULET_LOCK_WAITERS))
        usleep(1000);
    culet_lock(&lock);
    culet_unlock(&lock);
    usleep(10000);
    CHECK(!through, "another thread passed");
    culet_lock_fork_end();
    culet_unlock(&lock);
    pthread_join(thread, NULL);
    CHECK(through, "the other thread never came through");
    CHECK_EQUAL(lock.state, 0);
}

TEST(a_reset_lock_is_free)
{
    culet_lock(&lock);
    culet_lock_reset(&lock);
    CHECK_EQUAL(lock.state, 0);
    culet_lock(&lock);
    culet_unlock(&lock);
    CHECK_EQUAL(lock.state, 0);
}

CHECK_MAIN
