/* Take-overs, stopped at their barrier: what the holder and other threads do meanwhile. On its own each of these moments
 * lasts for nanoseconds. The link has culet_os_barrier call __wrap_culet_os_barrier below. */
#define _GNU_SOURCE
#include "arena.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "os.h"
#include "threads.h"

#include <errno.h>
#include <pthread.h>

static void (*at_barrier)(void); /* once */

bool __real_culet_os_barrier(void);
bool __wrap_culet_os_barrier(void);

bool __wrap_culet_os_barrier(void)
{
    void (*step)(void) = at_barrier;

    at_barrier = NULL;
    if (step)
        step();
    return __real_culet_os_barrier();
}

static struct culet_arena *preferred; /* of the holder */
static _Atomic(struct culet_thread *) holder;
static pthread_t holding;
static _Atomic bool over;

static struct culet_arena *held_by(struct culet_thread *thread)
{
    return atomic_load(&thread->arena);
}

static struct culet_thread *holder_of(unsigned number)
{
    return atomic_load(&culet_arena(number)->holder);
}

static void *use(void *unused)
{
    culet_free(culet_malloc(100));
    return unused;
}

static void *hold(void *unused)
{
    culet_thread.preferred = preferred;
    use(NULL);
    atomic_store(&holder, &culet_thread);
    while (!atomic_load(&over))
        usleep(1000);
    return unused;
}

/* Two arenas; another thread holds the one of that number, and is not inside. False where the kernel has no membarrier. */
static bool begin(unsigned number)
{
    use(NULL);
    if (held_by(&culet_thread) == &culet_arena_none) {
        CHECK(true, "no thread keeps an arena");
        return false;
    }
    run_elsewhere(use, NULL);
    CHECK_EQUAL(culet_arena_count(), 2);
    preferred = culet_arena(number);
    CHECK(pthread_create(&holding, NULL, hold, NULL) == 0, "no thread");
    while (!atomic_load(&holder))
        usleep(1000);
    CHECK(holder_of(number) == holder && held_by(holder) == preferred, "the thread does not hold the arena");
    return true;
}

static void end(void)
{
    CHECK(!at_barrier, "nobody was at the barrier");
    atomic_store(&over, true);
    pthread_join(holding, NULL);
    culet_heap_check();
}

/* ---- the holder ---- */

/* The store of `busy` became visible late: the holder has loaded its arena before. */
static void holder_is_inside(void)
{
    atomic_store(&holder->busy, CULET_INSIDE);
}

TEST(a_holder_that_has_entered_gets_its_arena_back)
{
    if (!begin(0))
        return;
    at_barrier = holder_is_inside;
    CHECK(!culet_arena_enter_for_purge(culet_arena(0)), "two threads are inside one arena");
    CHECK(held_by(holder) == culet_arena(0) && holder_of(0) == holder, "the holder has lost its arena");
    atomic_store(&holder->busy, CULET_OUTSIDE);
    CHECK(culet_arena_enter_for_purge(culet_arena(0)), "an arena with nobody inside");
    CHECK(held_by(holder) == &culet_arena_none, "two threads hold one arena");
    culet_arena_leave_after_purge(culet_arena(0));
    end();
}

static void holder_takes_another(void)
{
    atomic_store(&holder->busy, CULET_INSIDE);
    atomic_store(&holder->arena, culet_arena(1));
    atomic_store(&culet_arena(1)->holder, holder);
}

TEST(a_holder_that_has_taken_another_arena_keeps_that)
{
    if (!begin(0))
        return;
    at_barrier = holder_takes_another;
    CHECK(culet_arena_enter_for_purge(culet_arena(0)), "the arena was left");
    CHECK(held_by(holder) == culet_arena(1) && holder_of(1) == holder, "the holder has lost its other arena");
    CHECK(holder_of(0) == &culet_thread, "the arena has another holder");
    culet_arena_leave_after_purge(culet_arena(0));
    atomic_store(&holder->busy, CULET_OUTSIDE);
    end();
}

static void holder_takes_another_and_leaves(void)
{
    holder_takes_another();
    atomic_store(&holder->busy, CULET_OUTSIDE);
    CHECK(!culet_arena_try_lock(culet_arena(1)), "two threads take arenas from one at a time");
    CHECK(held_by(holder) == culet_arena(1), "the holder has lost its other arena");
}

TEST(one_thread_at_a_time_takes_an_arena_from_a_holder)
{
    if (!begin(0))
        return;
    at_barrier = holder_takes_another_and_leaves;
    CHECK(culet_arena_enter_for_purge(culet_arena(0)), "the arena was left");
    culet_arena_leave_after_purge(culet_arena(0));
    CHECK(culet_arena_try_lock(culet_arena(1)), "nobody takes an arena from the holder any more");
    culet_arena_unlock(culet_arena(1));
    end();
}

/* Its storage may be unmapped as soon as it has ended. */
static void holder_ends(void)
{
    atomic_store(&over, true);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(pthread_tryjoin_np(holding, NULL) == EBUSY, "a thread ended while its arena was taken over");
        usleep(3000);
    }
}

TEST(a_holder_does_not_end_while_its_arena_is_taken_over)
{
    if (!begin(0))
        return;
    at_barrier = holder_ends;
    CHECK(culet_arena_enter_for_purge(culet_arena(0)), "an arena with nobody inside");
    culet_arena_leave_after_purge(culet_arena(0));
    end();
}

/* It has found the placeholder, and tries to acquire an arena. */
static void holder_acquires(void)
{
    CHECK(held_by(holder) == &culet_arena_none, "the holder could enter");
    atomic_store(&holder->busy, CULET_ACQUIRING);
}

TEST(a_holder_that_acquires_has_lost_its_arena)
{
    if (!begin(0))
        return;
    at_barrier = holder_acquires;
    CHECK(culet_arena_enter_for_purge(culet_arena(0)), "a holder without an arena counts as inside");
    CHECK(held_by(holder) == &culet_arena_none && holder_of(0) == &culet_thread, "two threads hold one arena");
    culet_arena_leave_after_purge(culet_arena(0));
    atomic_store(&holder->busy, CULET_OUTSIDE);
    end();
}

static void give_to_holder(void)
{
    atomic_store(&culet_thread.arena, &culet_arena_none);
    atomic_store(&culet_arena(0)->holder, holder);
    atomic_store(&holder->arena, culet_arena(0));
    atomic_store(&holder->busy, CULET_OUTSIDE);
}

/* Two threads that take one arena from each other all the time, each outside at the other's look, run in parallel. */
TEST(take_overs_from_an_acquiring_holder_are_overlaps)
{
    if (!begin(0))
        return;
    culet_thread.acquisitions = culet_thread.overlaps = 0;
    culet_thread.preferred = NULL;
    unsigned rounds = 0;
    for (; rounds < 20 && !culet_thread.preferred; rounds++) {
        give_to_holder();
        at_barrier = rounds % 2 ? holder_acquires : NULL;
        CHECK(culet_arena_enter() == culet_arena(0), "the first arena was left");
        culet_arena_leave(culet_arena(0));
    }
    CHECK_EQUAL(rounds, 16);
    CHECK(culet_thread.preferred && culet_thread.preferred != culet_arena(0), "the thread prefers the first arena");
    atomic_store(&holder->busy, CULET_OUTSIDE);
    end();
}

/* ---- the thread that takes over ---- */

static void get_arena_back(void)
{
    atomic_store(&culet_thread.arena, culet_arena(0));
}

/* A third thread tried to take this one's arena, which therefore looks for another one, and gives the arena back. */
TEST(a_thread_that_gets_its_arena_back_takes_no_other)
{
    if (!begin(1))
        return;
    /* The other thread may have adopted a slab, and locked the first arena. */
    culet_arena_leave(culet_arena_enter());
    CHECK(holder_of(0) == &culet_thread, "the thread has lost its arena");
    culet_thread.preferred = culet_arena(1);
    atomic_store(&culet_thread.arena, &culet_arena_none);
    at_barrier = get_arena_back;
    struct culet_arena *arena = culet_arena_enter();
    CHECK(arena == culet_arena(0), "the thread is inside arena %u", arena->number);
    CHECK(held_by(&culet_thread) == arena && holder_of(0) == &culet_thread, "the thread does not hold its arena");
    CHECK(!holder_of(1) && held_by(holder) == &culet_arena_none, "the other arena has a holder");
    culet_arena_leave(arena);
    end();
}

CHECK_MAIN
