/* The membarrier of the bias: ending it waits for a biased thread that has just entered.
 *
 * Without it (bias.c, culet_os_barrier) a processor may delay the biased thread's store to `busy` beyond its load of
 * culet_bias_thread. The other thread then finds nobody inside, and both change one word, one of them without an
 * atomic. The window is some nanoseconds; so the biased thread's store is delayed behind stores that miss the cache,
 * and the bias is ended many times. */
#include "check.h"
#include "culet.h"

#include "bias.h"
#include "cache.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* The work, and its bound on a busy machine: the threads meet only while both have a processor. */
#define CYCLES 2000
#define SECONDS 4
#define VISITS 80 /* per bias: enough for it to have paid, so that the next one is not delayed (bias.c) */
#define COLD_BYTES ((size_t)64 << 20)
#define COLD_STORES 6

static _Atomic uint64_t word;    /* what both change */
static _Atomic uint64_t entered; /* times that the biased thread-to-be was inside */
static _Atomic bool over;

/* What a free does between entering and leaving, but longer, so that two at once collide. */
static void change_word(bool biased)
{
    if (!biased) {
        atomic_fetch_add_explicit(&word, 1, memory_order_acq_rel);
        return;
    }
    uint64_t before = atomic_load_explicit(&word, memory_order_relaxed);
    for (volatile int i = 0; i < 100; i++)
        continue;
    atomic_store_explicit(&word, before + 1, memory_order_relaxed);
}

static void *use_the_heap_exclusively(void *data)
{
    volatile unsigned char *cold = data;
    uint64_t seed = 3, inside = 0;

    culet_free(culet_malloc(1)); /* the thread has a cache of its own from here on */
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        for (int i = 0; i < COLD_STORES; i++)
            cold[check_random(&seed) % COLD_BYTES] = 1;
        change_word(culet_bias_enter(culet_cache));
        culet_bias_leave(culet_cache);
        culet_bias_visit(culet_cache);
        atomic_store_explicit(&entered, ++inside, memory_order_relaxed);
    }
    return NULL;
}

/* Waits until there is a biased thread that has been inside for some time. */
static void await_biased_thread(uint64_t *seed)
{
    uint64_t from;

    while (!atomic_load_explicit(&culet_bias_thread, memory_order_relaxed))
        sched_yield();
    from = atomic_load_explicit(&entered, memory_order_relaxed);
    for (unsigned round = 0; atomic_load_explicit(&entered, memory_order_relaxed) < from + VISITS; round++)
        if (round % 100000 == 99999)
            sched_yield();
    for (volatile uint64_t i = check_random(seed) % 200; i > 0; i--)
        continue;
}

TEST(ending_the_bias_waits_for_the_biased_thread)
{
    unsigned char *cold = mmap(NULL, COLD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = 5, cycles = 0;
    pthread_t thread;

    CHECK(cold != MAP_FAILED, "mmap");
    culet_free(culet_malloc(1));
    for (unsigned i = 0; i < 100 && !atomic_load(&culet_bias_thread); i++)
        culet_bias_visit(culet_cache);
    if (!atomic_load(&culet_bias_thread)) {
        CHECK(true, "the kernel has no membarrier, and the heap no biased");
        return;
    }
    memset(cold, 1, COLD_BYTES);
    CHECK_EQUAL(pthread_create(&thread, NULL, use_the_heap_exclusively, cold), 0);
    time_t end = time(NULL) + SECONDS;
    while (cycles < CYCLES && time(NULL) < end) {
        await_biased_thread(&seed);
        change_word(culet_bias_enter(culet_cache));
        culet_bias_leave(culet_cache);
        cycles++;
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    CHECK_EQUAL(atomic_load(&word), atomic_load(&entered) + cycles);
}

CHECK_MAIN
