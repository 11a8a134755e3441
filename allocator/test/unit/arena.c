/* Arenas: which thread holds which one; that a take-over, a purge and a fork find no thread inside; that threads which run
 * in parallel move apart, and those which take turns stay together. No block is lost or given out twice meanwhile. */
#define _GNU_SOURCE
#include "arena.h"

#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "lock.h"
#include "os.h"
#include "pagemap.h"
#include "purge.h"
#include "threads.h"

#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BYTES 1000
#define TURN 1200
#define THREADS 5

static bool barrier_there(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* From now on the kernel refuses the call in this process, as a sandbox does. */
static void forbid_membarrier(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38 /* ENOSYS */),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0, "no seccomp");
    CHECK(!culet_os_barrier(), "membarrier is not forbidden");
}

static struct culet_thread *holder_of(unsigned number)
{
    return atomic_load(&culet_arena(number)->holder);
}

static struct culet_arena *held(void)
{
    return atomic_load(&culet_thread.arena);
}

static unsigned arena_of(void *block)
{
    struct culet_slab *slab = (struct culet_slab *)culet_pagemap_span((uintptr_t)block);

    return slab->span.arena;
}

static unsigned char *make(unsigned char mark)
{
    unsigned char *block = culet_malloc(BYTES);

    if (!block)
        CHECK(false, "no memory");
    memset(block, mark, BYTES);
    return block;
}

static void drop(unsigned char *block)
{
    if (memcmp(block, block + 1, BYTES - 1) != 0)
        CHECK(false, "a block was changed");
    memset(block, 0, BYTES);
    culet_free(block);
}

/* Many requests and frees. */
static void work(unsigned char mark)
{
    static _Thread_local unsigned char *block[TURN];

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

static void check_nothing_left(void)
{
    struct heap_counts counts;

    check_used(0);
    culet_malloc_trim(0);
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used, 0);
    culet_heap_check();
}

/* Whether nobody holds the first arena. The scavenger may hold it, for a purge. */
static bool is_released(void)
{
    for (unsigned i = 0; i < 10000 && holder_of(0); i++)
        usleep(1000);
    return !holder_of(0);
}

/* ---- take-overs ---- */

/* No thread but those of the test enters an arena. */
static void without_scavenger(void)
{
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
}

static void *free_it(void *block)
{
    drop(block);
    return NULL;
}

TEST(a_thread_holds_the_first_arena_until_another_takes_it_over)
{
    without_scavenger();
    CHECK(held() == &culet_arena_none, "an arena is held before there is a heap");
    unsigned char *block = make(1);
    CHECK(!barrier_there() || held() == culet_arena(0), "the thread does not hold the first arena");
    CHECK(!barrier_there() || holder_of(0) == &culet_thread, "its holder is another one");
    work(1);
    run_thread(free_it, block);
    CHECK(held() == &culet_arena_none, "the thread holds an arena that was taken over");
    CHECK(is_released(), "an ended thread holds the arena");
    work(2);
    CHECK(!barrier_there() || held() == culet_arena(0), "it does not get the arena again");
    CHECK_EQUAL(culet_arena_count(), 1);
    check_nothing_left();
}

static void *work_here(void *data)
{
    work((unsigned char)(uintptr_t)data);
    CHECK(!barrier_there() || culet_wakeup_scavenger_runs() || holder_of(0) == &culet_thread,
          "a thread that worked alone is not the holder");
    return NULL;
}

TEST(threads_one_after_the_other_use_one_arena)
{
    without_scavenger();
    work(1);
    for (uintptr_t i = 0; i < 200; i++) {
        run_thread(work_here, (void *)i);
        CHECK(is_released(), "a thread that is gone holds the arena");
        CHECK_EQUAL(culet_arena_count(), 1);
    }
    CHECK_EQUAL(culet_arena_threads(), 1);
    check_nothing_left();
}

/* ---- overlaps ---- */

static void *allocate_elsewhere(void *data)
{
    unsigned char **block = data;

    *block = make(3);
    CHECK(held() != culet_arena(0), "the arena was taken over while its holder was inside");
    CHECK(arena_of(*block) != 0, "a block of an arena with another thread inside");
    return NULL;
}

TEST(an_arena_with_a_thread_inside_is_left_alone)
{
    unsigned char *block = NULL;

    without_scavenger();
    run_elsewhere(allocate_elsewhere, &block);
    CHECK_EQUAL(culet_arena_count(), 2);
    CHECK(!holder_of(1), "an ended thread holds an arena");
    /* This thread holds the first arena, so it frees by the remote word. */
    drop(block);
    struct heap_counts counts;
    count_heap(&counts);
    CHECK_EQUAL(counts.bins[culet_size_class(BYTES)].remote, barrier_there());
    check_nothing_left();
}

static void *only_free(void *block)
{
    drop(block);
    return NULL;
}

static void *take_first(void *data)
{
    struct culet_arena *arena = culet_arena_enter();

    (void)data;
    CHECK(arena == culet_arena(0), "a thread that acquires an arena keeps another one");
    culet_arena_leave(arena);
    return NULL;
}

/* It found another thread's attempt to take its arena over, and uses none. */
TEST(a_thread_that_acquires_an_arena_is_not_inside)
{
    culet_heap_setup();
    culet_arena_leave(culet_arena_enter());
    CHECK(holder_of(0) == &culet_thread, "the thread does not hold the first arena");
    atomic_store(&culet_thread.busy, CULET_ACQUIRING);
    run_thread(take_first, NULL);
    CHECK(held() == &culet_arena_none, "the thread has not lost its arena");
    CHECK(culet_arena_enter() == culet_arena(0), "the first arena is held still");
    CHECK_EQUAL(atomic_load(&culet_thread.busy), CULET_INSIDE);
    culet_arena_leave(culet_arena(0));
}

/* A free of a thread that holds no arena does not wait either. */
TEST(a_thread_that_only_frees_need_not_get_the_arena)
{
    struct heap_counts counts;
    unsigned char *block = make(1);

    run_elsewhere(only_free, block);
    count_heap(&counts);
    CHECK_EQUAL(counts.bins[culet_size_class(BYTES)].remote, 1);
    check_nothing_left();
}

static pthread_barrier_t gate;

/* Inside its arena until all threads are. Stores the arena's number. */
static void *stay_inside(void *data)
{
    culet_free(make(1));
    struct culet_arena *arena = culet_arena_enter();
    *(unsigned *)data = arena->number;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    culet_arena_leave(arena);
    return NULL;
}

#define INSIDE 80

TEST(arenas_are_added_up_to_a_limit)
{
    unsigned limit = culet_os_processors() * 4 < CULET_ARENAS ? culet_os_processors() * 4 : CULET_ARENAS;
    unsigned inside = limit < INSIDE ? limit : INSIDE, number[INSIDE];
    bool seen[CULET_ARENAS] = {false};
    pthread_t thread[INSIDE];

    without_scavenger();
    culet_free(make(1));
    pthread_barrier_init(&gate, NULL, inside);
    for (unsigned i = 0; i + 1 < inside; i++)
        CHECK(pthread_create(&thread[i], NULL, stay_inside, &number[i]) == 0, "no thread");
    struct culet_arena *arena = culet_arena_enter();
    number[inside - 1] = arena->number;
    pthread_barrier_wait(&gate);
    CHECK_EQUAL(culet_arena_count(), inside);
    for (unsigned i = 0; i < inside; i++) {
        CHECK(number[i] < inside && !seen[number[i]], "two threads are inside arena %u", number[i]);
        seen[number[i]] = true;
    }
    pthread_barrier_wait(&gate);
    culet_arena_leave(arena);
    for (unsigned i = 0; i + 1 < inside; i++)
        pthread_join(thread[i], NULL);

    /* More threads than arenas: they share. */
    static pthread_t many[2 * CULET_ARENAS];
    for (uintptr_t i = 0; i < 2 * inside; i++)
        CHECK(pthread_create(&many[i], NULL, free_it, make((unsigned char)i)) == 0, "no thread");
    for (unsigned i = 0; i < 2 * inside; i++)
        pthread_join(many[i], NULL);
    CHECK(culet_arena_count() <= limit, "%u arenas, the limit is %u", culet_arena_count(), limit);
    check_nothing_left();
}

/* A thread that waited at every arena gets one when it is left. */
static void *make_one(void *data)
{
    *(unsigned char **)data = make(9);
    return NULL;
}

TEST(a_thread_waits_when_there_is_one_inside_every_arena)
{
    unsigned limit = culet_os_processors() * 4 < CULET_ARENAS ? culet_os_processors() * 4 : CULET_ARENAS;
    unsigned number[CULET_ARENAS];
    pthread_t thread[CULET_ARENAS], late;
    unsigned char *block = NULL;

    without_scavenger();
    pthread_barrier_init(&gate, NULL, limit + 1);
    for (unsigned i = 0; i < limit; i++)
        CHECK(pthread_create(&thread[i], NULL, stay_inside, &number[i]) == 0, "no thread");
    pthread_barrier_wait(&gate);
    CHECK_EQUAL(culet_arena_count(), limit);
    CHECK(pthread_create(&late, NULL, make_one, &block) == 0, "no thread");
    usleep(50000);
    CHECK(!block, "a thread got an arena with another one inside");
    pthread_barrier_wait(&gate);
    pthread_join(late, NULL);
    CHECK(block, "the thread got no block");
    for (unsigned i = 0; i < limit; i++)
        pthread_join(thread[i], NULL);
    drop(block);
    check_nothing_left();
}

static _Atomic bool over;

static void *overlap(void *data)
{
    unsigned char *block[64] = {NULL};
    uint64_t seed = (uintptr_t)data;

    while (!atomic_load(&over)) {
        unsigned char **slot = &block[check_random(&seed) % 64];
        if (*slot)
            drop(*slot);
        *slot = make((unsigned char)(uintptr_t)data);
    }
    for (unsigned i = 0; i < 64; i++)
        if (block[i])
            drop(block[i]);
    return NULL;
}

static unsigned held_arenas(void)
{
    unsigned number = 0;

    for (unsigned i = 0; i < culet_arena_count(); i++)
        number += holder_of(i) != NULL;
    return number;
}

/* Two threads that run at the same time end up with an arena each, so that they do not take over for ever. On a busy
 * machine neither of them may be the first one. */
TEST(parallel_threads_move_apart)
{
    pthread_t thread[2];

    culet_free(make(1));
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, overlap, (void *)(i + 1)) == 0, "no thread");
    bool apart = false;
    for (unsigned i = 0; i < 600 && !apart; i++) {
        usleep(100000);
        apart = held_arenas() > 1;
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    CHECK(apart || !barrier_there() || culet_os_processors() == 1, "two threads shared one arena for a minute");
    check_nothing_left();
}

/* Threads that overlapped once come back to the first arena when they take turns. */
static void *come_back(void *data)
{
    unsigned char *block = NULL;

    pthread_barrier_wait(&gate); /* 1: the first thread is inside the first arena */
    block = make(1);
    CHECK(arena_of(block) != 0, "the thread got the first arena");
    pthread_barrier_wait(&gate); /* 2: nobody is inside from here on */
    for (unsigned i = 0; i < 100; i++) {
        drop(block);
        pthread_barrier_wait(&gate); /* the first thread's turn: it takes both arenas over */
        pthread_barrier_wait(&gate);
        block = make(1);
    }
    *(unsigned *)data = arena_of(block);
    drop(block);
    return NULL;
}

TEST(threads_that_take_turns_come_back_to_the_first_arena)
{
    unsigned last = 77;
    pthread_t thread;

    without_scavenger();
    if (!barrier_there()) {
        CHECK(true, "no thread keeps an arena without membarrier");
        return;
    }
    culet_free(make(1));
    pthread_barrier_init(&gate, NULL, 2);
    CHECK(pthread_create(&thread, NULL, come_back, &last) == 0, "no thread");
    struct culet_arena *arena = culet_arena_enter();
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    culet_arena_leave(arena);
    for (unsigned i = 0; i < 100; i++) {
        pthread_barrier_wait(&gate);
        for (unsigned n = 0; n < culet_arena_count(); n++) {
            CHECK(culet_arena_enter_for_purge(culet_arena(n)), "the other thread is inside");
            culet_arena_leave_after_purge(culet_arena(n));
        }
        work(1);
        pthread_barrier_wait(&gate);
    }
    pthread_join(thread, NULL);
    CHECK_EQUAL(last, 0);
    check_nothing_left();
}

/* ---- arenas taken for a purge ---- */

static _Atomic bool made;

static void *make_and_say(void *data)
{
    *(unsigned char **)data = make(9);
    atomic_store(&made, true);
    return NULL;
}

TEST(a_purge_takes_the_arena_from_its_holder)
{
    unsigned char *kept = make(1), *block = NULL;
    pthread_t thread;

    CHECK(culet_arena_enter_for_purge(culet_arena(0)), "nobody else is inside");
    CHECK(atomic_load(&culet_arena(0)->taken_for_purge) && holder_of(0) == &culet_thread, "the arena is not taken");
    CHECK(pthread_create(&thread, NULL, make_and_say, &block) == 0, "no thread");
    /* A purge that takes long: the other thread uses another arena once. */
    for (unsigned i = 0; i < 600 && !atomic_load(&made); i++)
        usleep(100000);
    CHECK(atomic_load(&made), "the thread waited a minute for the end of the purge");
    CHECK_EQUAL(arena_of(block), 1);
    culet_arena_leave_after_purge(culet_arena(0));
    CHECK(!holder_of(0) && held() == &culet_arena_none, "the purge kept the arena");
    pthread_join(thread, NULL);
    drop(block);
    drop(kept);
    check_nothing_left();
}

static void *purge_first(void *result)
{
    *(bool *)result = culet_arena_enter_for_purge(culet_arena(0));
    if (*(bool *)result)
        culet_arena_leave_after_purge(culet_arena(0));
    return NULL;
}

TEST(a_purge_does_not_wait_for_a_thread_inside)
{
    bool entered = true;

    culet_free(make(1));
    run_elsewhere(purge_first, &entered);
    CHECK(!entered, "two threads were inside one arena");
    run_thread(purge_first, &entered);
    CHECK(entered, "an arena with nobody inside was not taken");
    check_nothing_left();
}

/* ---- thread ends ---- */

static pthread_key_t key;
static bool key_is_later; /* than the arenas' own */
static _Atomic unsigned destroyed;

/* Runs in several rounds, so also after the destructor of the arenas' own key. */
static void destructor(void *data)
{
    unsigned rounds = (unsigned)(uintptr_t)data;

    work((unsigned char)rounds);
    atomic_fetch_add(&destroyed, 1);
    /* In each round libc calls the destructors in the order in which the keys were created. */
    bool ends = key_is_later || rounds < 3;
    CHECK_EQUAL(culet_thread.life, ends ? CULET_THREAD_ENDING : CULET_THREAD_REGISTERED);
    CHECK((held() == &culet_arena_none) == (ends || !barrier_there()), "round %u: the thread holds %s arena",
          4 - rounds, ends ? "an" : "no");
    if (rounds > 1)
        pthread_setspecific(key, (void *)(uintptr_t)(rounds - 1));
}

static void *end_late(void *unused)
{
    pthread_setspecific(key, (void *)3);
    work(1);
    return unused;
}

static void end_threads_late(void)
{
    for (unsigned i = 0; i < 20; i++) {
        run_thread(end_late, NULL);
        CHECK(is_released(), "an ended thread holds an arena");
        CHECK_EQUAL(culet_arena_threads(), 1);
    }
    CHECK_EQUAL(atomic_load(&destroyed), 60);
    check_nothing_left();
}

TEST(destructors_may_allocate_at_a_threads_end)
{
    work(1);
    key_is_later = true;
    CHECK(pthread_key_create(&key, destructor) == 0, "no key");
    end_threads_late();
}

TEST(destructors_may_allocate_before_and_after_the_arenas_own)
{
    CHECK(pthread_key_create(&key, destructor) == 0, "no key");
    work(1);
    end_threads_late();
}

/* A thread that the library could not register (no key is left) releases its arena at each leave. */
static void *use_unregistered(void *data)
{
    (void)data;
    culet_thread.life = CULET_THREAD_ENDING;
    work(5);
    CHECK(held() == &culet_arena_none, "an unregistered thread keeps an arena");
    return NULL;
}

TEST(a_thread_without_registration_keeps_no_arena)
{
    work(1);
    for (unsigned i = 0; i < 20; i++) {
        run_thread(use_unregistered, NULL);
        CHECK(is_released(), "an ended thread holds an arena");
    }
    CHECK_EQUAL(culet_arena_threads(), 1);
    check_nothing_left();
}

static void *use_short(void *data)
{
    if ((uintptr_t)data % 2)
        culet_thread.life = CULET_THREAD_ENDING;
    drop(make((unsigned char)(uintptr_t)data));
    return NULL;
}

/* Threads end while others take their arenas over; large stacks, so that libc unmaps each at once. ARENA_ENDS in the
 * environment: how many. */
TEST(threads_end_while_their_arenas_are_taken_over)
{
    pthread_attr_t attributes;
    pthread_t user[2], thread;
    uintptr_t ends = getenv("ARENA_ENDS") ? strtoul(getenv("ARENA_ENDS"), NULL, 10) : 150;

    culet_free(make(1));
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, (size_t)64 << 20) == 0,
          "stack");
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&user[i], NULL, overlap, (void *)(i + 1)) == 0, "no thread");
    for (uintptr_t i = 0; i < ends; i++) {
        CHECK(pthread_create(&thread, &attributes, use_short, (void *)i) == 0, "no thread");
        pthread_join(thread, NULL);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(user[i], NULL);
    check_nothing_left();
}

/* ---- without membarrier ---- */

static void *use_parallel(void *data)
{
    for (unsigned i = 0, rounds = check_rounds(8, 20); i < rounds; i++) {
        work((unsigned char)(uintptr_t)data);
        CHECK(held() == &culet_arena_none, "a thread keeps its arena without membarrier");
    }
    return NULL;
}

static void use_without_membarrier(void)
{
    pthread_t thread[THREADS];

    work(1);
    CHECK(held() == &culet_arena_none, "a thread keeps its arena without membarrier");
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, use_parallel, (void *)(i + 1)) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    check_nothing_left();
}

TEST(without_membarrier_nobody_keeps_an_arena)
{
    forbid_membarrier();
    use_without_membarrier();
}

/* A sandbox that begins later: the first take-over notices. */
TEST(membarrier_may_be_forbidden_later)
{
    work(1);
    unsigned char *block = make(1);
    forbid_membarrier();
    run_thread(free_it, block);
    use_without_membarrier();
}

#ifndef __SANITIZE_THREAD__ /* it does not support forks of a process with threads */
/* ARENA_FORKS in the environment: how often. */
static void fork_beside_threads(void)
{
    pthread_t thread[3];
    unsigned long forks = getenv("ARENA_FORKS") ? strtoul(getenv("ARENA_FORKS"), NULL, 10) : 30;

    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&thread[i], NULL, overlap, (void *)(i + 1)) == 0, "no thread");
    for (unsigned long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(200);
            culet_heap_check();
            work(2);
            culet_malloc_trim(0);
            culet_heap_check();
            _exit(0);
        }
        check_child(child);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    check_nothing_left();
}

/* A thread that releases its arena has to get the arena's lock, also while a fork waits for it. */
TEST(forks_let_threads_leave_without_membarrier)
{
    forbid_membarrier();
    work(1);
    fork_beside_threads();
}

TEST(forks_beside_parallel_threads)
{
    work(1);
    fork_beside_threads();
}
#endif

/* ---- forks ---- */

/* The arena that the thread holds when it has used one: a purge by the thread itself leaves it without. */
static struct culet_arena *held_after_use(void)
{
    culet_free(culet_malloc(16));
    return held();
}

TEST(a_child_goes_on_with_the_threads_arena)
{
    unsigned char *kept = make(5);

    without_scavenger();
    for (unsigned i = 0; i < 50; i++) {
        work(1);
        CHECK(!barrier_there() || held_after_use() == culet_arena(0), "the thread holds another arena");
        pid_t child = fork();
        if (child == 0) {
            CHECK(!barrier_there() || held() == culet_arena(0), "the child's thread has lost its arena");
            CHECK_EQUAL(culet_arena_threads(), 1);
            work(2);
            CHECK(!barrier_there() || held_after_use() == culet_arena(0), "the child's thread does not keep the arena");
            drop(kept);
            check_used(0);
            _exit(0);
        }
        check_child(child);
        CHECK(!barrier_there() || held_after_use() == culet_arena(0), "a fork takes the arena away");
    }
    drop(kept);
    check_nothing_left();
}

static _Atomic bool frozen, thawed;

static void *enter_frozen(void *unused)
{
    while (!atomic_load(&frozen))
        sched_yield();
    drop(make(4));
    CHECK(atomic_load(&thawed), "a thread was inside a frozen arena");
    return unused;
}

TEST(nobody_enters_a_frozen_arena)
{
    pthread_t thread[2];

    work(1);
    for (unsigned i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, enter_frozen, NULL) == 0, "no thread");
    run_elsewhere(use_short, NULL); /* a second arena */
    culet_lock(&culet_purge_lock);
    culet_arena_freeze();
    atomic_store(&frozen, true);
    usleep(100000);
    atomic_store(&thawed, true);
    culet_arena_unfreeze();
    culet_unlock(&culet_purge_lock);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    check_nothing_left();
}

#ifndef __SANITIZE_THREAD__
/* In a child no other thread holds an arena, whoever held it in the parent. */
TEST(a_child_has_no_other_holders)
{
    unsigned number[3];
    pthread_t thread[3];

    without_scavenger();
    culet_free(make(1));
    pthread_barrier_init(&gate, NULL, 4);
    for (unsigned i = 0; i < 3; i++)
        CHECK(pthread_create(&thread[i], NULL, stay_inside, &number[i]) == 0, "no thread");
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate); /* they leave, and keep their arenas until they end */
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < culet_arena_count(); i++) {
            CHECK(!holder_of(i) || holder_of(i) == &culet_thread, "arena %u is held by a thread of the parent", i);
            CHECK(!atomic_load(&culet_arena(i)->taken_for_purge), "arena %u is frozen still", i);
            CHECK_EQUAL(culet_arena(i)->lock.state, 0);
        }
        check_nothing_left();
        _exit(0);
    }
    check_child(child);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    check_nothing_left();
}
#endif

/* ---- threads that take turns, as under Ruby's GVL; rings.c has what others do beside them ---- */

#define SLOTS 256
static _Atomic(unsigned char *) slot[SLOTS];
static _Atomic unsigned turn; /* of thread turn % THREADS */
static _Atomic unsigned in_first[THREADS], all[THREADS];

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

    for (unsigned round = 0, rounds = check_rounds(20, 40); round < rounds; round++) {
        while (atomic_load(&turn) % THREADS != me)
            sched_yield();
        for (unsigned i = 0; i < TURN; i++) {
            unsigned char *block = make((unsigned char)(me + 1));
            atomic_fetch_add(&in_first[me], arena_of(block) == 0);
            atomic_fetch_add(&all[me], 1);
            put((unsigned)check_random(&seed), block);
        }
        atomic_fetch_add(&turn, 1);
        if (round % 8 == me)
            usleep(1000);
    }
    return NULL;
}

TEST(threads_that_take_turns_share_one_arena)
{
    pthread_t thread[THREADS];

    without_scavenger();
    culet_free(culet_malloc(1));
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, take_turns, (void *)i) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        put(i, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_EQUAL(atomic_load(&in_first[i]), atomic_load(&all[i]));
    check_nothing_left();
    CHECK_EQUAL(culet_arena_count(), 1);
}

CHECK_MAIN
