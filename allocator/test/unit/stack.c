/* The main thread's stack: the part below the stack pointer is returned, the used part stays, and other threads do
 * nothing. */
#include "check.h"
#include "resident.h"
#include "stack.h"

#include <pthread.h>
#include <ucontext.h>

#define DEEP ((size_t)4 << 20)
#define HALF (DEEP / 2)

/* As Ruby does: touches so much of the stack, and returns its lowest address. */
static __attribute__((noinline)) uintptr_t touch(size_t bytes)
{
    volatile char *room = __builtin_alloca(bytes);

    for (size_t at = bytes; at >= 4096; at -= 4096)
        room[at - 1] = 1;
    return (uintptr_t)room;
}

static __attribute__((noinline)) size_t release(void)
{
    return culet_stack_release();
}

TEST(unused_stack_goes_back)
{
    uintptr_t deepest = touch(DEEP);
    CHECK(resident_bytes(deepest, DEEP - CULET_STACK_MARGIN) > HALF, "the stack was not touched");

    size_t returned = release();
    CHECK(returned >= DEEP - 2 * CULET_STACK_MARGIN, "%zu bytes returned", returned);
    size_t left = resident_bytes(deepest, DEEP - 2 * CULET_STACK_MARGIN);
    CHECK(left == 0, "%zu bytes are still resident", left);
    CHECK(touch(DEEP) == deepest, "the stack cannot be used again");
}

/* A frame with something in it, around `inner`. */
static __attribute__((noinline)) void with_contents(void (*inner)(void))
{
    volatile unsigned char contents[HALF];

    for (size_t i = 0; i < HALF; i++)
        contents[i] = (unsigned char)(i % 251 + 1);
    inner();
    for (size_t i = 0; i < HALF; i++)
        CHECK(contents[i] == i % 251 + 1, "byte %zu of a frame in use was changed", i);
}

static void touch_and_release(void)
{
    touch(HALF);
    CHECK(release() > 0, "nothing was returned");
}

TEST(stack_in_use_stays)
{
    with_contents(touch_and_release);
}

static size_t elsewhere;

static void *release_in_thread(void *unused)
{
    elsewhere = release();
    return unused;
}

TEST(another_thread_returns_nothing)
{
    uintptr_t deepest = touch(DEEP);
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, release_in_thread, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    CHECK(elsewhere == 0, "%zu bytes returned", elsewhere);
    CHECK(resident_bytes(deepest, DEEP - CULET_STACK_MARGIN) > HALF, "the main thread's stack was given back");
}

#ifdef __GLIBC__ /* musl has no makecontext */
static void release_in_context(void)
{
    elsewhere = release();
}

TEST(a_fiber_of_the_main_thread_returns_nothing)
{
    ucontext_t here, fiber;
    void *room = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(room != MAP_FAILED, "no memory");
    uintptr_t deepest = touch(DEEP);
    CHECK(getcontext(&fiber) == 0, "no context");
    fiber.uc_stack.ss_sp = room;
    fiber.uc_stack.ss_size = HALF;
    fiber.uc_link = &here;
    makecontext(&fiber, release_in_context, 0);
    CHECK(swapcontext(&here, &fiber) == 0, "no switch");
    CHECK(elsewhere == 0, "%zu bytes returned", elsewhere);
    CHECK(resident_bytes(deepest, DEEP - CULET_STACK_MARGIN) > HALF, "the main thread's stack was given back");
}
#endif

CHECK_MAIN
