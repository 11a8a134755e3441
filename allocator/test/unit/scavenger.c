/* The scavenger: idle memory goes back without a call, in a forked child too; small programs have no such thread. */
#define _GNU_SOURCE
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "lock.h"
#include "program.h"
#include "reclaim_policy.h"
#include "wakeup.h"

#include <dirent.h>
#include <stdlib.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 100000
#define SURVIVES 2000

static unsigned char *block[BLOCKS];
static _Atomic unsigned longest_pause;

static size_t bytes_of(size_t i)
{
    return 16 + i * 37 % 1000;
}

static void burst(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = culet_malloc(bytes_of(i));
        CHECK(block[i], "no memory");
        memset(block[i], (int)(i % 251 + 1), bytes_of(i));
    }
}

static void drop(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % SURVIVES) {
            culet_free(block[i]);
            block[i] = NULL;
        }
}

static void check_survivors(void)
{
    for (size_t i = 0; i < BLOCKS; i += SURVIVES)
        for (size_t at = 0; at < bytes_of(i); at++)
            if (block[i][at] != i % 251 + 1)
                CHECK(false, "byte %zu of a block of %zu was changed", at, bytes_of(i));
}

/* Opens a file of a thread's. */
static FILE *open_of(const char *thread, const char *file)
{
    char name[300];

    snprintf(name, sizeof name, "/proc/self/task/%.20s/%s", thread, file);
    return fopen(name, "r");
}

/* The allocator's threads, by name. Calls `look` with the status of each. */
static size_t scavengers(void (*look)(FILE *status))
{
    DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;
    char name[32];

    CHECK(tasks, "no /proc");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        FILE *comm = entry->d_name[0] == '.' ? NULL : open_of(entry->d_name, "comm");
        if (!comm)
            continue;
        if (fgets(name, sizeof name, comm) && strcmp(name, "culet\n") == 0) {
            FILE *status = open_of(entry->d_name, "status");
            CHECK(status, "no status");
            if (look)
                look(status);
            fclose(status);
            count++;
        }
        fclose(comm);
    }
    closedir(tasks);
    return count;
}

static size_t returned(void)
{
    culet_lock(&culet_pages_lock);
    size_t bytes = culet_pages_stats().purged_bytes;
    culet_unlock(&culet_pages_lock);
    return bytes;
}

/* Waits, at most a minute, until so many bytes have gone back, without a call of malloc or free. */
static size_t wait_for_return(size_t before, size_t bytes)
{
    for (int i = 0; i < 6000 && returned() - before < bytes; i++)
        usleep(10000);
    return returned() - before;
}

static void burst_is_returned(void)
{
    size_t before = returned();

    burst();
    drop();
    /* 50 MB were in use; each survivor keeps a page, or a few where kernel pages are large. */
    size_t back = wait_for_return(before, (size_t)45 << 20);
    CHECK(back >= ((size_t)30 << 20), "only %zu bytes went back", back);
    check_survivors();
}

TEST(idle_memory_goes_back_without_a_call)
{
    burst_is_returned();
    CHECK_EQUAL(scavengers(NULL), 1);
}

TEST(a_forked_child_gets_a_scavenger_of_its_own)
{
    culet_settings.decay_ms = 50;
    burst_is_returned();
    pid_t child = fork();
    if (child == 0) {
        burst_is_returned();
        _exit(scavengers(NULL) == 1 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child, "no child");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x", status);
}

TEST(the_scavenger_wakes_for_the_next_burst)
{
    culet_settings.decay_ms = 50;
    for (int i = 0; i < 3; i++) {
        burst_is_returned();
        for (size_t k = 0; k < BLOCKS; k += SURVIVES)
            culet_free(block[k]);
    }
    CHECK_EQUAL(scavengers(NULL), 1);
}

TEST(small_programs_have_no_scavenger)
{
    for (size_t i = 0; i < 8000; i++)
        block[i] = culet_malloc(bytes_of(i));
    for (size_t i = 0; i < 8000; i++)
        culet_free(block[i]);
    CHECK_EQUAL(scavengers(NULL), 0);
    CHECK_EQUAL(atomic_load(&culet_scavenger_state), CULET_SCAVENGER_NONE);
}

static void check_blocked(FILE *status)
{
    char line[256];
    unsigned long long blocked = 0;

    while (fgets(line, sizeof line, status))
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16);
    CHECK(blocked >> (SIGTERM - 1) & 1 && blocked >> (SIGUSR1 - 1) & 1, "blocked: %llx", blocked);
}

TEST(the_scavenger_takes_no_signals)
{
    burst();
    for (int i = 0; i < 600 && !scavengers(NULL); i++)
        usleep(100000);
    CHECK_EQUAL(scavengers(check_blocked), 1);
}

/* If the kernel refuses the thread, frees return memory. */
TEST(without_a_scavenger_frees_return_the_surplus)
{
    struct rlimit none = {0, 0};

    if (getuid() == 0)
        CHECK(setresuid(65534, 65534, 65534) == 0, "cannot become nobody");
    CHECK(setrlimit(RLIMIT_NPROC, &none) == 0, "no limit");
    size_t before = returned();
    burst();
    CHECK_EQUAL(atomic_load(&culet_scavenger_state), CULET_SCAVENGER_UNAVAILABLE);
    for (size_t i = 0; i < BLOCKS; i++)
        culet_free(block[i]);
    CHECK(returned() - before >= ((size_t)30 << 20), "only %zu bytes went back", returned() - before);
    CHECK_EQUAL(scavengers(NULL), 0);
}

/* Frees while the scavenger purges the same slabs; contents are checked all the while. */
static _Atomic bool stop;

static void *churn(void *data)
{
    uint64_t seed = (uint64_t)(uintptr_t)data;
    static _Thread_local unsigned char *own[4000];

    while (!atomic_load(&stop)) {
        size_t i = check_random(&seed) % 4000, bytes = 16 + check_random(&seed) % 3000;
        if (own[i] && own[i][0] != (unsigned char)(i % 251 + 1))
            CHECK(false, "a block was changed");
        culet_free(own[i]);
        own[i] = culet_malloc(bytes);
        memset(own[i], (int)(i % 251 + 1), bytes);
    }
    for (size_t i = 0; i < 4000; i++)
        culet_free(own[i]);
    return NULL;
}

TEST(the_scavenger_works_beside_threads_that_allocate)
{
    pthread_t thread[3];

    culet_settings.decay_ms = 50;
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)) == 0, "no thread");
    for (int i = 0; i < 2; i++) {
        burst_is_returned();
        for (size_t k = 0; k < BLOCKS; k += SURVIVES)
            culet_free(block[k]);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

void __real_culet_os_pause(unsigned microseconds);
void __wrap_culet_os_pause(unsigned microseconds);
void __wrap_culet_os_pause(unsigned microseconds)
{
    if (microseconds > longest_pause)
        longest_pause = microseconds;
    __real_culet_os_pause(microseconds);
}

static bool asleep(void)
{
    return atomic_load(&culet_scavenger_state) == CULET_SCAVENGER_ASLEEP;
}

static bool paused_for_long(void)
{
    return longest_pause >= 20000;
}

static void await(bool (*event)(void))
{
    for (size_t most = 60000; !event() && most; most--)
        usleep(1000);
}

/* A heap in use, in which nothing is to be returned: each slab has a free block in each unit. */
TEST(visits_of_many_slabs_make_the_interval_longer)
{
    CHECK_EQUAL(culet_reclaim_interval(500, 500 * CULET_PURGE_VISITS_PER_MS), 500);
    CHECK_EQUAL(culet_reclaim_interval(500, 900 * CULET_PURGE_VISITS_PER_MS), 900);
    culet_settings.decay_ms = 10;
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = culet_malloc(1024);
    for (size_t i = 0; i < BLOCKS; i += 64)
        culet_free(block[i]);
    /* The last purge before the sleep visited some 1,560 slabs. */
    await(asleep);
    culet_wakeup_send();
    await(paused_for_long);
    CHECK(longest_pause >= 20000 && longest_pause < 100000, "the longest pause was %u us", longest_pause);
}

TEST(intervals_within_the_bounds_are_accepted)
{
    CHECK_EQUAL(culet_reclaim_parse_decay("10"), 10);
    CHECK_EQUAL(culet_reclaim_parse_decay("2500"), 2500);
    CHECK_EQUAL(culet_reclaim_parse_decay("3600000"), 3600000);
    static const char *const others[] = {"",    "0",    "9",   "3600001", "99999999999999999999999",
                                         "-20", "20ms", "1.5", " 20"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CHECK(!culet_reclaim_parse_decay(others[i]), "'%s' was accepted", others[i]);
}

CHECK_MAIN
