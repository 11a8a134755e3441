/* early.c - allocation before main, in preinit functions and in constructors of any priority, and after it, in
 * destructors and exit handlers. EARLY_LIBRARIES: libraries that do the same, separated by colons. */
#define _GNU_SOURCE
#include "programs.h"

#define STAGES 5

static void *block[STAGES];
static unsigned stages;

static void allocate(void)
{
    block[stages] = malloc(1000 * (stages + 1));
    if (!block[stages])
        abort();
    memset(block[stages], 'a' + (int)stages, 1000 * (stages + 1));
    stages++;
}

/* libc passes these to the functions it calls before main. */
static void preinit(int count, char **arguments, char **environment)
{
    (void)count, (void)arguments, (void)environment;
    allocate();
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(int, char **, char **) = preinit;

__attribute__((constructor(101))) static void first(void)
{
    allocate();
}

__attribute__((constructor(102))) static void second(void)
{
    allocate();
}

__attribute__((constructor)) static void third(void)
{
    allocate();
}

static void at_exit(void)
{
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i * 10));
}

__attribute__((destructor)) static void last(void)
{
    at_exit();
}

TEST(allocated_before_main)
{
    atexit(at_exit);
#ifdef __GLIBC__
    CHECK_EQUAL(stages, 4);
#else
    CHECK_EQUAL(stages, 3); /* musl calls no preinit functions */
#endif
    for (unsigned i = 0; i < stages; i++) {
        CHECK(filled(block[i], 'a' + (int)i, 1000 * (i + 1)), "the block of stage %u changed", i);
        CHECK(malloc_usable_size(block[i]) >= 1000 * (i + 1), "the block of stage %u is too small", i);
        free(block[i]);
    }
}

TEST(libraries_allocated_in_constructors)
{
    char *names = strdup(getenv("EARLY_LIBRARIES") ? getenv("EARLY_LIBRARIES") : ""), *rest = names, *name;
    int count = 0;

    while ((name = strtok_r(rest, ":", &rest))) {
        void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
        CHECK(library != NULL, "%s is not loaded", name);
        int (*intact)(void) = (int (*)(void))dlsym(library, "early_library_intact");
        CHECK(intact != NULL && intact(), "the blocks of %s changed", name);
        dlclose(library);
        count++;
    }
    CHECK(count > 0, "EARLY_LIBRARIES is not set");
    free(names);
}

/* The exit handlers run after the tests, in a process that ends by exit. */
TEST(exit_runs_destructors)
{
    pid_t child = fork();
    if (child == 0)
        exit(0);
    check_child(child);
}

CHECK_MAIN
