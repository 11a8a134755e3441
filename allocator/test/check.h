/* check.h - the runner of all C test programs.
 *
 *     #include "check.h"
 *     TEST(first_thing) { CHECK(1 + 1 == 2, "arithmetic gave %d", 1 + 1); }
 *     CHECK_MAIN
 *
 * Each test runs in a process of its own, so it has a fresh heap, and a crash fails one test only. A failed test prints
 * "not ok NAME: ...". A test that takes longer than CHECK_SECONDS is killed. Arguments name the tests to run; without
 * any, all run. */
#pragma once

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Against hanging; long enough for a busy machine and a sanitizer. */
#ifndef CHECK_SECONDS
#define CHECK_SECONDS 600
#endif

#define CHECK_TESTS 256

struct check_test {
    const char *name;
    void (*run)(void);
};

static struct check_test check_tests[CHECK_TESTS];
static unsigned check_test_count;
static const char *check_name = "";
static _Atomic uint64_t *check_counter; /* shared with the processes that a test forks */

__attribute__((noreturn, format(printf, 4, 5))) static inline void
check_fail(const char *file, int line, const char *condition, const char *why, ...)
{
    char text[1024];
    int length = snprintf(text, sizeof text, "not ok %s: %s:%d: %s: ", check_name, file, line, condition);
    va_list arguments;

    if (length < 0 || (size_t)length >= sizeof text - 2)
        length = (int)sizeof text - 2;
    va_start(arguments, why);
    vsnprintf(text + length, sizeof text - 1 - (size_t)length, why, arguments);
    va_end(arguments);
    strcat(text, "\n");
    /* One write, without stdio's buffers: a test may fail in any thread or forked child. */
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(3);
    _exit(1);
}

/* Fails the test unless `condition` holds. The rest is a printf message that says what was found. */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        atomic_fetch_add_explicit(check_counter, 1, memory_order_relaxed);                                             \
        if (__builtin_expect(!(condition), 0))                                                                         \
            check_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                   \
    } while (0)

/* Two unsigned numbers are equal. */
#define CHECK_EQUAL(found, expected)                                                                                   \
    do {                                                                                                               \
        unsigned long check_found = (unsigned long)(found), check_expected = (unsigned long)(expected);                \
        CHECK(check_found == check_expected, #found " is %lu, expected %lu", check_found, check_expected);             \
    } while (0)

/* Defines and registers a test; tests run in the order of the file. */
#define TEST(test)                                                                                                     \
    static void test_##test(void);                                                                                     \
    __attribute__((constructor)) static void register_##test(void)                                                     \
    {                                                                                                                  \
        check_tests[check_test_count++] = (struct check_test){.name = #test, .run = test_##test};                      \
    }                                                                                                                  \
    static void test_##test(void)

/* Random numbers that are the same on every machine.
 * Algorithm: splitmix64, S. Vigna, public domain, https://prng.di.unimi.it/splitmix64.c */
static inline uint64_t check_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* How often a test repeats something: `few` times, or with `make test-all` `many`. */
static inline unsigned check_rounds(unsigned few, unsigned many)
{
    return getenv("CULET_TEST_ALL") ? many : few;
}

/* Waits for a forked child and fails the test unless it exited with status 0. */
static inline void check_child(pid_t child)
{
    int status = 0;

    CHECK(child > 0, "fork failed");
    CHECK(waitpid(child, &status, 0) == child, "the child was not there to wait for");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with wait status 0x%x", (unsigned)status);
}

static inline bool check_chosen(const char *name, int argc, char **argv)
{
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return false;
}

/* Runs one test in its own process; prints its line. */
static inline bool check_run(const struct check_test *test)
{
    uint64_t before = atomic_load(check_counter);
    int status;
    pid_t child;

    check_name = test->name;
    fflush(stdout);
    child = fork();
    if (child < 0) {
        printf("not ok %s: fork failed\n", test->name);
        return false;
    }
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(CHECK_SECONDS);
        test->run();
        fflush(stdout);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(check_counter) > before) {
        printf("ok %s (%lu checks)\n", test->name, (unsigned long)(atomic_load(check_counter) - before));
        return true;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("not ok %s: not done after %d seconds\n", test->name, CHECK_SECONDS);
    else if (WIFSIGNALED(status))
        printf("not ok %s: ended by signal %d (%s)\n", test->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 0)
        printf("not ok %s: it checked nothing\n", test->name);
    else if (WEXITSTATUS(status) != 1) /* with 1 the line is written already */
        printf("not ok %s: exit status %d\n", test->name, WEXITSTATUS(status));
    return false;
}

static inline int check_main(int argc, char **argv)
{
    unsigned failed = 0, ran = 0;

    check_counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (check_counter == MAP_FAILED) {
        printf("not ok setup: mmap failed\n");
        return 1;
    }
    for (unsigned i = 0; i < check_test_count; i++)
        if (check_chosen(check_tests[i].name, argc, argv)) {
            ran++;
            failed += !check_run(&check_tests[i]);
        }
    if (!ran)
        printf("not ok setup: no test of that name\n");
    return failed || !ran;
}

#define CHECK_MAIN                                                                                                     \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        return check_main(argc, argv);                                                                                 \
    }
