/* The membarrier of a take-over: it waits for a holder that has just entered its arena.
 *
 * Without it (arena.c, culet_os_barrier) a processor may delay the holder's store to `busy` beyond its load of the arena.
 * The other thread then finds nobody inside, and both change one word without atomics. The window is some nanoseconds; so
 * the holder's store is delayed behind stores that miss the cache, and the arena is taken over many times. */
#include "arena.h"
#include "check.h"
#include "culet.h"
#include "os.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* The bound of the work on a busy machine: the threads meet only while both have a processor. */
#define SECONDS 6
#define COLD_BYTES ((size_t)64 << 20)
#define COLD_STORES 6

static _Atomic uint64_t word;    /* what both change inside the first arena */
static _Atomic uint64_t entered; /* times that the first thread was inside it */
static _Atomic bool over;

/* What a free does between entering and leaving, but longer, so that two at once collide. */
static void change_word(unsigned rounds)
{
    uint64_t before = atomic_load_explicit(&word, memory_order_relaxed);

    for (volatile unsigned i = 0; i < rounds; i++)
        continue;
    atomic_store_explicit(&word, before + 1, memory_order_relaxed);
}

/* Enters and leaves the arena that it holds, and takes it again when it has lost it. */
static void *enter_and_leave(void *data)
{
    struct culet_thread *self = &culet_thread;
    volatile unsigned char *cold = data;
    uint64_t seed = 3, inside = 0;

    culet_free(culet_malloc(1));
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        for (int i = 0; i < COLD_STORES; i++)
            cold[check_random(&seed) % COLD_BYTES] = 1;
        struct culet_arena *arena = culet_arena_enter_held(self);
        if (arena == culet_arena(0)) {
            change_word(100);
            culet_arena_leave_held(self);
            atomic_store_explicit(&entered, ++inside, memory_order_relaxed);
        } else {
            /* It lost the arena, and may hold another one, which it gives up. */
            if (culet_arena_enter_for_purge(culet_arena(0)))
                culet_arena_leave_after_purge(culet_arena(0));
            self->preferred = NULL;
            self->overlaps = 0;
            arena = culet_arena_enter();
            culet_arena_leave(arena);
        }
    }
    return NULL;
}

/* Waits until the other thread has been inside again. */
static void await_holder(uint64_t *seed)
{
    uint64_t from = atomic_load_explicit(&entered, memory_order_relaxed);

    for (unsigned round = 1; atomic_load_explicit(&entered, memory_order_relaxed) == from; round++)
        if (round % 100000 == 0)
            sched_yield();
    for (volatile uint64_t i = check_random(seed) % 400; i > 0; i--)
        continue;
}

TEST(a_take_over_waits_for_the_holder)
{
    unsigned char *cold = mmap(NULL, COLD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = 5, taken = 0, take_overs = check_rounds(10000, 40000);
    pthread_t thread;

    CHECK(cold != MAP_FAILED, "mmap");
    culet_free(culet_malloc(1));
    if (!culet_os_barrier()) {
        CHECK(true, "the kernel has no membarrier, and nobody keeps an arena");
        return;
    }
    memset(cold, 1, COLD_BYTES);
    CHECK_EQUAL(pthread_create(&thread, NULL, enter_and_leave, cold), 0);
    time_t end = time(NULL) + SECONDS;
    while (taken < take_overs && time(NULL) < end) {
        await_holder(&seed);
        if (!culet_arena_enter_for_purge(culet_arena(0)))
            continue;
        change_word(20);
        culet_arena_leave_after_purge(culet_arena(0));
        taken++;
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    CHECK(taken > 0, "the arena was never taken over");
    CHECK_EQUAL(atomic_load(&word), atomic_load(&entered) + taken);
}

CHECK_MAIN
