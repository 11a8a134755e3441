/* fork.c - fork while other threads allocate and free: no child hangs, none loses a block, all go on.
 *
 * FORKS in the environment: forks of each test that forks in a loop (default 60). */
#define _GNU_SOURCE
#include "programs.h"
#include "scavenger.h"

#include <sched.h>
#include <spawn.h>
#include <time.h>

#define THREADS 4
#define FORKING 2 /* threads that fork */
#define SLOTS 256 /* per thread */
#define LARGEST ((size_t)3 << 20)
#define PATIENCE_SECONDS 120 /* for a child that needs milliseconds */

static _Atomic(void *) slot[THREADS][SLOTS];
static _Atomic bool stop;
static pthread_barrier_t gate;

/* The threads run while the fork happens, and rest while the child lives, which has none of them. */
static _Atomic bool at_rest;
static pthread_mutex_t rest = PTHREAD_MUTEX_INITIALIZER;

static void rest_if_told(void)
{
    if (!atomic_load_explicit(&at_rest, memory_order_relaxed))
        return;
    pthread_mutex_lock(&rest);
    pthread_mutex_unlock(&rest);
}

/* Mostly small blocks, some large, now and then a huge one. */
static size_t some_size(uint64_t *random)
{
    uint64_t n = check_random(random);

    switch (n % 64) {
    case 0:
        return n / 64 % 300000;
    case 1:
        return n / 64 % 2048 ? n / 64 % 40000 : LARGEST - 65536;
    default:
        return n / 64 % 1500;
    }
}

/* Marks both ends, so that a block given out twice is noticed. */
static void *marked_block(uint64_t *random)
{
    size_t bytes = some_size(random) + sizeof(void *) + 1;
    void **block = malloc(bytes);

    if (!block) /* CHECK counts, in a word that all processes share: too slow for here */
        CHECK(false, "malloc(%zu) returned NULL", bytes);
    *block = block;
    ((char *)block)[bytes - 1] = *(char *)block;
    return block;
}

static void give_back(void *block)
{
    if (!block)
        return;
    if (*(void **)block != block)
        CHECK(false, "the block %p was written by another thread", block);
    free(block);
}

/* Replaces blocks in its own slots and its neighbour's, so that most are freed by another thread. */
static void *churn(void *data)
{
    size_t self = (size_t)(uintptr_t)data;
    uint64_t random = self + 1;

    pthread_barrier_wait(&gate);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        size_t whose = (self + (check_random(&random) & 1)) % THREADS;
        give_back(atomic_exchange(&slot[whose][check_random(&random) % SLOTS], marked_block(&random)));
        rest_if_told();
    }
    return NULL;
}

static size_t reachable_bytes(void)
{
    size_t bytes = 0;

    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < SLOTS; i++)
            bytes += malloc_usable_size(atomic_load(&slot[t][i]));
    return bytes;
}

static void free_slots(void)
{
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < SLOTS; i++)
            give_back(atomic_exchange(&slot[t][i], NULL));
}

static void show_stack(pid_t child)
{
    char command[200];

    unsetenv("LD_PRELOAD");
    snprintf(command, sizeof command,
             "command -v gdb >/dev/null && gdb -batch -p %d -ex 'thread apply all bt' 2>/dev/null", (int)child);
    if (system(command) != 0)
        printf("(no gdb to show the stack of %d)\n", (int)child);
}

/* Waits for a child; one that hangs is shown, killed, and fails the test. */
static void wait_for(pid_t child, const char *what)
{
    struct timespec begin, now, nap = {.tv_nsec = 20000};
    int status = 0;
    pid_t got;

    CHECK(child > 0, "fork: %s", strerror(errno));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while ((got = waitpid(child, &status, WNOHANG)) == 0) {
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 2000000)
            nap.tv_nsec += nap.tv_nsec / 4;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > PATIENCE_SECONDS) {
            show_stack(child);
            kill(child, SIGKILL);
            CHECK(false, "%s hangs", what);
        }
    }
    CHECK(got == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with wait status 0x%x", what,
          (unsigned)status);
}

/* Waits for a child while the other threads rest; then lets them get on for a moment that differs each time. */
static void wait_for_while_threads_rest(pid_t child, uint64_t *random)
{
    struct timespec moment = {.tv_nsec = (long)(check_random(random) % 400000)};

    pthread_mutex_lock(&rest);
    atomic_store(&at_rest, true);
    wait_for(child, "the child");
    atomic_store(&at_rest, false);
    pthread_mutex_unlock(&rest);
    nanosleep(&moment, NULL);
}

static void start_churning(pthread_t *thread)
{
    atomic_store(&stop, false);
    CHECK(pthread_barrier_init(&gate, NULL, THREADS + 1) == 0, "pthread_barrier_init");
    for (size_t t = 0; t < THREADS; t++)
        start_thread(&thread[t], churn, (void *)(uintptr_t)t);
}

static void stop_churning(pthread_t *thread)
{
    atomic_store(&stop, true);
    for (size_t t = 0; t < THREADS; t++)
        join_thread(thread[t]);
}

/* In use must be what the slots and `base` hold, and at most one more block for each thread that the child lacks. */
static void check_used(size_t base, size_t reachable, const char *when)
{
    size_t used = used_bytes();

    CHECK(used >= base + reachable, "%s: %zu bytes in use, %zu are reachable", when, used, base + reachable);
    CHECK(used <= base + reachable + THREADS * LARGEST, "%s: %zu bytes in use, only %zu are reachable", when, used,
          base + reachable);
}

/* A child's life, with at times a child of its own. */
static void live(uint64_t random, size_t base, unsigned generation)
{
    begin_scavenger();
    /* The blocks that the child's missing threads held. */
    size_t lost = used_bytes() - base - reachable_bytes();

    check_used(base, reachable_bytes(), "at first");
    for (int i = 0; i < 200; i++)
        give_back(atomic_exchange(&slot[i % THREADS][check_random(&random) % SLOTS], marked_block(&random)));
    CHECK_EQUAL(used_bytes(), base + reachable_bytes() + lost);
    if (generation < 2 && check_random(&random) % 8 == 0) {
        pid_t child = fork();
        if (child == 0) {
            live(random + 1, base + lost, generation + 1);
            return;
        }
        wait_for(child, "a grandchild");
    }
    free_slots();
    CHECK_EQUAL(used_bytes(), base + lost);
    if (check_random(&random) % 16 == 0)
        malloc_trim(0);
    for (int i = 0; i < 50; i++)
        give_back(marked_block(&random));
    CHECK_EQUAL(used_bytes(), base + lost);
}

static long forks_of_test(void)
{
    long forks = getenv("FORKS") ? atol(getenv("FORKS")) : check_rounds(40, 60);

    CHECK(forks > 0, "FORKS is no number");
    return forks;
}

TEST(fork_with_live_threads)
{
    pthread_t thread[THREADS];
    uint64_t random = 42;
    long forks = forks_of_test();

    start_churning(thread);
    begin_scavenger();
    size_t base = used_bytes();
    pthread_barrier_wait(&gate);
    for (long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            live(check_random(&random), base, 0);
            _exit(0);
        }
        wait_for_while_threads_rest(child, &random);
    }
    stop_churning(thread);
    CHECK(used_bytes() <= base + reachable_bytes(), "%zu bytes in use, %zu are reachable", used_bytes(),
          base + reachable_bytes());
    free_slots();
    CHECK(used_bytes() <= base, "%zu bytes in use at the end, %zu at the start", used_bytes(), base);
}

/* ---- the other threads only free ---- */

static void *only_free(void *data)
{
    uint64_t random = (uintptr_t)data;

    pthread_barrier_wait(&gate);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint64_t n = check_random(&random);
        give_back(atomic_exchange(&slot[n % THREADS][n / THREADS % SLOTS], NULL));
        rest_if_told();
    }
    return NULL;
}

TEST(fork_while_threads_only_free)
{
    pthread_t thread[THREADS];
    uint64_t random = 13;
    long forks = forks_of_test();

    atomic_store(&stop, false);
    CHECK(pthread_barrier_init(&gate, NULL, THREADS + 1) == 0, "pthread_barrier_init");
    for (size_t t = 0; t < THREADS; t++)
        start_thread(&thread[t], only_free, (void *)(uintptr_t)t);
    begin_scavenger();
    size_t base = used_bytes();
    pthread_barrier_wait(&gate);
    for (long i = 0; i < forks; i++) {
        for (int k = 0; k < 200; k++)
            give_back(atomic_exchange(&slot[k % THREADS][check_random(&random) % SLOTS], marked_block(&random)));
        pid_t child = fork();
        if (child == 0) {
            live(check_random(&random), base, 0);
            _exit(0);
        }
        wait_for_while_threads_rest(child, &random);
    }
    stop_churning(thread);
    free_slots();
    CHECK(used_bytes() <= base, "%zu bytes in use at the end, %zu at the start", used_bytes(), base);
}

/* ---- other threads fork ---- */

static void *fork_often(void *data)
{
    uint64_t random = (uintptr_t)data;
    long forks = forks_of_test() / FORKING;

    for (long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 200; k++)
                give_back(marked_block(&random));
            free_slots();
            _exit(0);
        }
        check_random(&random);
        give_back(marked_block(&random));
        wait_for(child, "a thread's child");
    }
    return NULL;
}

TEST(threads_fork_at_the_same_time)
{
    pthread_t thread[THREADS], forking[FORKING];

    start_churning(thread);
    pthread_barrier_wait(&gate);
    for (size_t i = 0; i < FORKING; i++)
        start_thread(&forking[i], fork_often, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < FORKING; i++)
        join_thread(forking[i]);
    stop_churning(thread);
    free_slots();
}

/* ---- threads start and end meanwhile ---- */

static void *short_life(void *data)
{
    uint64_t random = (uintptr_t)data;

    for (int i = 0; i < 20; i++)
        give_back(atomic_exchange(&slot[0][check_random(&random) % SLOTS], marked_block(&random)));
    return NULL;
}

static void *begin_threads(void *data)
{
    uint64_t random = (uintptr_t)data;

    while (!atomic_load(&stop)) {
        pthread_t thread;
        start_thread(&thread, short_life, (void *)(uintptr_t)check_random(&random));
        join_thread(thread);
    }
    return NULL;
}

TEST(fork_while_threads_come_and_go)
{
    pthread_t thread[THREADS];
    uint64_t random = 7;
    long forks = forks_of_test();

    atomic_store(&stop, false);
    for (size_t t = 0; t < THREADS; t++)
        start_thread(&thread[t], begin_threads, (void *)(uintptr_t)(t + 1));
    for (long i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t own;
            for (int k = 0; k < 100; k++)
                give_back(marked_block(&random));
            free_slots();
            start_thread(&own, short_life, (void *)(uintptr_t)i);
            join_thread(own);
            free_slots();
            _exit(0);
        }
        check_random(&random);
        wait_for(child, "the child");
    }
    stop_churning(thread);
    free_slots();
    struct heap_info info = heap_info();
    CHECK(info.uordblks < 4 << 20, "%zu bytes are in use at the end", info.uordblks);
}

/* ---- generations of children, each with threads of its own ---- */

static void descend(int generation)
{
    pthread_t thread[THREADS];

    if (generation == 0)
        return;
    start_churning(thread);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < 20; i++)
        sched_yield();
    pid_t child = fork();
    if (child == 0) {
        free_slots();
        descend(generation - 1);
        _exit(0);
    }
    stop_churning(thread);
    free_slots();
    wait_for(child, "a descendant");
}

TEST(fork_in_many_generations)
{
    descend((int)check_rounds(8, 20));
    CHECK(used_bytes() < 1 << 20, "%zu bytes are in use at the end", used_bytes());
}

/* ---- vfork, posix_spawn, system, popen ---- */

extern char **environ;

TEST(spawn_with_live_threads)
{
    pthread_t thread[THREADS];
    char *words[] = {"sh", "-c", "exit 0", NULL};

    start_churning(thread);
    pthread_barrier_wait(&gate);
    for (unsigned i = 0, spawns = check_rounds(30, 100); i < spawns; i++) {
        pid_t child;
        CHECK_EQUAL(posix_spawnp(&child, "sh", NULL, NULL, words, environ), 0);
        wait_for(child, "a spawned shell");
    }
    for (unsigned i = 0, forks = check_rounds(10, 30); i < forks; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        wait_for(child, "a vforked program");
    }
    for (unsigned i = 0, shells = check_rounds(5, 20); i < shells; i++) {
        char line[20] = "";
        CHECK_EQUAL(system("exit 0"), 0);
        FILE *pipe = popen("echo hello", "r");
        CHECK(pipe && fgets(line, sizeof line, pipe) && strcmp(line, "hello\n") == 0, "popen read %s", line);
        CHECK_EQUAL(pclose(pipe), 0);
    }
    stop_churning(thread);
    free_slots();
}

CHECK_MAIN
