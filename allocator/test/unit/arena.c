/* The bias: a thread that alone uses the heap becomes biased; any other thread ends that; no block is lost or given out
 * twice while the biased thread changes and threads only free, trim, fork and exit. */
#include "bias.h"
#include "cache.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

/* Four blocks of this size are a unit, so that every fourth request is a visit to the slow path. */
#define BYTES 1000
#define TURN 1200
#define THREADS 5

/* Without the kernel's membarrier there is never a biased thread. */
static bool barrier_there(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static bool is_biased(void)
{
    return atomic_load(&culet_bias_thread) == culet_cache;
}

static unsigned char *make(unsigned char mark)
{
    unsigned char *block = culet_malloc(BYTES);

    CHECK(block, "no memory");
    memset(block, mark, BYTES);
    return block;
}

static void drop(unsigned char *block)
{
    CHECK(memcmp(block, block + 1, BYTES - 1) == 0, "a block was changed");
    memset(block, 0, BYTES);
    culet_free(block);
}

/* Many requests and frees by this thread alone. */
static void work(unsigned char mark)
{
    static unsigned char *block[TURN];

    for (unsigned i = 0; i < TURN; i++)
        block[i] = make(mark);
    for (unsigned i = 0; i < TURN; i++)
        drop(block[i]);
}

static void check_used(size_t expected)
{
    struct heap_counts counts;

    culet_heap_check();
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, expected);
}

static void run_thread(void *(*run)(void *), void *data)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run, data) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void *free_it(void *block)
{
    drop(block);
    return NULL;
}

static void *work_here(void *data)
{
    work((unsigned char)(uintptr_t)data);
    CHECK(is_biased() == barrier_there(), "a thread that worked alone is not the biased thread");
    return NULL;
}

TEST(a_thread_that_works_alone_becomes_the_biased_thread)
{
    CHECK(!is_biased(), "there is a biased thread before there is a heap");
    work(1);
    CHECK(is_biased() == barrier_there(), "it is not the biased thread");
    check_used(0);
}

TEST(another_threads_visit_ends_the_bias)
{
    work(1);
    unsigned char *block = make(2);
    run_thread(free_it, block);
    CHECK(!atomic_load(&culet_bias_thread), "the biased thread outlived another thread's free");
    check_used(0);
    work(3);
    CHECK(is_biased() == barrier_there(), "it does not become the biased thread again");
    check_used(0);
}

TEST(a_biased_thread_that_exits_ends_the_bias)
{
    work(1);
    for (uintptr_t i = 0; i < 20; i++) {
        run_thread(work_here, (void *)i);
        CHECK(!atomic_load(&culet_bias_thread), "a thread that is gone owns the heap");
        check_used(0);
    }
    work(2);
    check_used(0);
}

TEST(a_biased_thread_forks)
{
    unsigned char *kept = make(5);

    for (unsigned i = 0; i < 50; i++) {
        work(1);
        pid_t child = fork();
        if (child == 0) {
            CHECK(!atomic_load(&culet_bias_thread), "the child has a biased thread");
            work(2);
            CHECK(is_biased() == barrier_there(), "the child does not become the biased thread");
            drop(kept);
            check_used(0);
            _exit(0);
        }
        check_child(child);
    }
    work(3);
    CHECK(is_biased() == barrier_there(), "the parent does not become the biased thread again");
    drop(kept);
    check_used(0);
}

/* ---- biased threads that change: threads take turns, as under Ruby's GVL, while others free, trim and fork ---- */

#define SLOTS 256
static _Atomic(unsigned char *) slot[SLOTS];
static _Atomic unsigned turn; /* of thread turn % THREADS */
static _Atomic unsigned owned[THREADS];
static _Atomic bool done;

static void put(unsigned i, unsigned char *block)
{
    unsigned char *old = atomic_exchange(&slot[i % SLOTS], block);

    if (old)
        drop(old);
}

static void *take_turns(void *data)
{
    unsigned me = (unsigned)(uintptr_t)data;
    uint64_t seed = me + 1;

    for (unsigned round = 0; round < 40; round++) {
        while (atomic_load(&turn) % THREADS != me)
            sched_yield();
        for (unsigned i = 0; i < TURN; i++) {
            put((unsigned)check_random(&seed), make((unsigned char)(me + 1)));
            if (is_biased())
                atomic_fetch_add(&owned[me], 1);
        }
        atomic_fetch_add(&turn, 1);
        if (round % 8 == me)
            usleep(1000);
    }
    return NULL;
}

/* Never allocates, so never has a cache. */
static void *only_free(void *data)
{
    uint64_t seed = (uintptr_t)data;

    while (!atomic_load(&done)) {
        put((unsigned)check_random(&seed), NULL);
        usleep(200); /* long enough for a biased thread to settle between two frees */
    }
    return NULL;
}

static void *trim_and_ask(void *data)
{
    (void)data;
    while (!atomic_load(&done)) {
        culet_malloc_trim(0);
        CHECK(culet_mallinfo2().arena > 0, "a heap without memory");
        usleep(3000);
    }
    return NULL;
}

#ifndef __SANITIZE_THREAD__ /* it does not support forks of a process with threads */
/* A child finds every block that stands in a slot, and can work. */
static void *fork_now_and_then(void *data)
{
    (void)data;
    while (!atomic_load(&done)) {
        pid_t child = fork();
        if (child == 0) {
            alarm(200);
            for (unsigned i = 0; i < SLOTS; i++)
                put(i, NULL);
            work(9);
            culet_heap_check();
            _exit(0);
        }
        check_child(child);
        usleep(5000);
    }
    return NULL;
}
#endif

static void change_biased_thread(void *(*const others[])(void *), unsigned count)
{
    pthread_t thread[THREADS], other[4];
    unsigned biased_threads = 0;

    culet_free(culet_malloc(1));
    for (unsigned i = 0; i < count; i++)
        CHECK(pthread_create(&other[i], NULL, others[i], (void *)(uintptr_t)(i + 100)) == 0, "no thread");
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, take_turns, (void *)i) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    atomic_store(&done, true);
    for (unsigned i = 0; i < count; i++)
        pthread_join(other[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        put(i, NULL);
    check_used(0);
    for (unsigned i = 0; i < THREADS; i++)
        biased_threads += owned[i] > 0;
    CHECK(count || biased_threads == THREADS || !barrier_there(), "only %u of %d threads were ever biased",
          biased_threads, THREADS);
    CHECK(biased_threads > 0 || !barrier_there(), "no thread was ever biased: this tested nothing");
    culet_malloc_trim(0);
    struct heap_counts counts;
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used, 0);
}

TEST(threads_take_turns)
{
    change_biased_thread(NULL, 0);
}

TEST(threads_take_turns_while_others_only_free)
{
    static void *(*const others[])(void *) = {only_free, only_free};

    change_biased_thread(others, 2);
}

TEST(threads_take_turns_while_others_trim_and_free)
{
    static void *(*const others[])(void *) = {trim_and_ask, only_free};

    change_biased_thread(others, 2);
}

#ifndef __SANITIZE_THREAD__
TEST(threads_take_turns_while_others_fork_and_free)
{
    static void *(*const others[])(void *) = {fork_now_and_then, only_free, fork_now_and_then};

    change_biased_thread(others, 3);
}
#endif

CHECK_MAIN
