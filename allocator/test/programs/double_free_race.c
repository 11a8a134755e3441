/* double_free_race.c - two threads free one block at the same moment, one of which holds the block's arena: one of them
 * must report a double free, or a later request, which collects the other thread's free.
 *
 * A report ends in SIGABRT; a handler returns the threads to the race. Without a fence in free, which would cost more
 * than the rest of it, some races go unnoticed. The bound allows for a virtual machine's processors. */
#define _GNU_SOURCE
#define CHECK_SECONDS 120
#include "programs.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <time.h>

#define RACES 60000
#define SECONDS 5 /* on a busy machine: the threads meet only while both have a processor */

static void *_Atomic block;
static _Atomic unsigned turn; /* counts the meetings of the two threads */
static _Atomic unsigned noticed;
static _Thread_local sigjmp_buf back;

static void come_back(int signal)
{
    (void)signal;
    atomic_fetch_add(&noticed, 1);
    siglongjmp(back, 1);
}

static void try_to_free(void *freed)
{
    if (sigsetjmp(back, 1) == 0)
        free(freed);
}

/* A report here is about an earlier race. */
static void *try_to_get(void)
{
    return sigsetjmp(back, 1) == 0 ? malloc(48) : malloc(48);
}

static void meet(unsigned *meetings)
{
    unsigned rounds = 0;

    atomic_fetch_add(&turn, 1);
    ++*meetings;
    while (atomic_load(&turn) < 2 * *meetings)
        if (++rounds % 4096 == 0)
            sched_yield();
}

static void delay(unsigned rounds)
{
    for (volatile unsigned i = 0; i < rounds; i++)
        continue;
}

static void *free_too(void *unused)
{
    unsigned meetings = 0;

    for (unsigned race = 0; race < 2 * RACES; race++) {
        meet(&meetings);
        delay(race % 9);
        try_to_free(atomic_load(&block));
        meet(&meetings);
    }
    return unused;
}

TEST(a_race_of_two_frees_is_noticed)
{
    struct sigaction action = {.sa_handler = come_back, .sa_flags = SA_NODEFER};
    unsigned meetings = 0, races = 0;
    time_t end = time(NULL) + SECONDS;
    pthread_t thread;

    CHECK(dup2(open("/dev/null", O_WRONLY), STDERR_FILENO) == STDERR_FILENO, "/dev/null");
    CHECK(sigaction(SIGABRT, &action, NULL) == 0, "sigaction");
    start_thread(&thread, free_too, NULL);
    for (; races < RACES && time(NULL) < end; races++) {
        atomic_store(&block, try_to_get());
        meet(&meetings);
        delay(races / 9 % 9);
        try_to_free(atomic_load(&block));
        meet(&meetings);
    }
    try_to_get();
    /* The other thread is not ended: its end would collect frees, and report outside of the race. */
    CHECK(races > 0, "there was no race");
    /* In total: a free of a later race may report this one. */
    CHECK(atomic_load(&noticed) + 2 + races / 2000 >= races, "%u of %u races were noticed", atomic_load(&noticed),
          races);
}

CHECK_MAIN
