/* Libraries that come and go. The test's libraries are beside the program. */
#define _GNU_SOURCE
#include "check.h"
#include "modules.h"
#include "unwind.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>

#define MOST 256

static int look(void *data)
{
    uintptr_t pcs[MOST];
    void *expected[MOST];
    bool complete;
    size_t count = culet_unwind(pcs, MOST, &complete);
    int glibc = backtrace(expected, MOST);

    CHECK(complete, "%s: the stack was not followed to its end", (const char *)data);
    CHECK(count > 2 && (size_t)glibc >= count, "%s: %zu frames, glibc has %d", (const char *)data, count, glibc);
    for (size_t i = 1; i < count; i++)
        CHECK(pcs[count - i] == (uintptr_t)expected[(size_t)glibc - i], "%s: frame %zu is %#lx, not %p",
              (const char *)data, count - i, pcs[count - i], expected[(size_t)glibc - i]);
    return 1;
}

static int compare(const void *a, const void *b)
{
    (void)a;
    (void)b;
    look("through libc");
    return 0;
}

static void *open_library(const char *name)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);

    CHECK(length > 0, "the program's path is not known");
    path[length] = '\0';
    sprintf(strrchr(path, '/') + 1, "unwind-%s.so", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    return library;
}

typedef int through_function(int (*callback)(void *), void *data);
typedef int through_libc_function(int (*callback)(const void *, const void *));

static const char *const names[] = {"small", "large", "pointer"};

TEST(libraries_with_and_without_frame_pointers)
{
    culet_modules_refresh();
    for (unsigned i = 0; i < 3; i++) {
        void *library = open_library(names[i]);
        CHECK_EQUAL(((through_function *)dlsym(library, "through"))(look, (char *)names[i]), 2);
        CHECK_EQUAL(((through_libc_function *)dlsym(library, "through_libc"))(compare), 1);
    }
}

/* Rules of one library are not used for another one at the same address. */
TEST(a_library_in_the_place_of_another_one)
{
    uintptr_t former = 0;
    unsigned in_place = 0;

    culet_modules_refresh();
    for (unsigned i = 0; i < 60; i++) {
        const char *name = names[i % 2];
        void *library = open_library(name);
        through_function *through = (through_function *)dlsym(library, "through");
        in_place += (uintptr_t)through == former;
        former = (uintptr_t)through;
        for (unsigned again = 0; again < 3; again++)
            CHECK_EQUAL(through(look, (char *)name), 2);
        if (i % 20 == 19)
            culet_modules_refresh();
        CHECK(dlclose(library) == 0, "the library cannot be closed");
    }
    CHECK(in_place > 20, "only %u libraries were loaded in the place of the former one", in_place);
}

static atomic_bool ended;
static atomic_uint walks, opened;

static int descend(void *data)
{
    uintptr_t pcs[MOST];
    unsigned depth = *(unsigned *)data;
    bool complete;

    if (depth) {
        depth--;
        return descend(&depth) + (int)depth;
    }
    size_t count = culet_unwind(pcs, MOST, &complete);
    CHECK(count > 1 && complete, "%zu frames", count);
    for (size_t i = 0; i < count; i++) {
        uintptr_t start, end;
        culet_unwind_function(pcs[i], &start, &end);
    }
    atomic_fetch_add(&walks, 1);
    return 1;
}

static void *sample(void *data)
{
    void *library = open_library(data);
    through_function *through = (through_function *)dlsym(library, "through");

    atomic_fetch_add(&opened, 1);
    while (!atomic_load(&ended))
        for (unsigned depth = 0; depth < 20; depth++)
            through(descend, &depth);
    return NULL;
}

TEST(libraries_come_and_go_beside_walks)
{
    pthread_t thread[2];
    uintptr_t start, end;

    culet_modules_refresh();
    CHECK(pthread_create(&thread[0], NULL, sample, "pointer") == 0, "no thread");
    CHECK(pthread_create(&thread[1], NULL, sample, "pointer") == 0, "no thread");
    /* So that no other library takes the place of one that was closed. */
    while (atomic_load(&opened) < 2)
        sched_yield();
    for (unsigned i = 0; i < 400 || atomic_load(&walks) < 400; i++) {
        const char *name = names[i % 2];
        void *library = open_library(name);
        through_function *through = (through_function *)dlsym(library, "through");
        CHECK_EQUAL(through(look, (char *)name), 2);
        dlclose(library);
        CHECK(!culet_unwind_function((uintptr_t)through + 4, &start, &end), "a function of an unloaded library");
        if (i % 64 == 0)
            culet_modules_refresh();
    }
    atomic_store(&ended, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

CHECK_MAIN
