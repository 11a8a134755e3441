/* programs.h - shared by the test programs that run under the preloaded library. */
#pragma once

#include "check.h"
#include "libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

struct heap_info { /* mallinfo2's layout; glibc's header has it since 2.33 */
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/* Whether culet serves this program. */
static inline bool on_culet(void)
{
    int (*active)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "culet_active");
    return active && active() == 1;
}

static inline struct heap_info heap_info(void)
{
    struct heap_info (*ask)(void) = (struct heap_info(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    CHECK(ask != NULL, "there is no mallinfo2");
    return ask();
}

/* Bytes in use, as whole blocks. */
static inline size_t used_bytes(void)
{
    struct heap_info info = heap_info();
    return info.uordblks + info.hblkhd;
}

/* A value of /proc/self/smaps_rollup in bytes, e.g. "Private_Dirty:". */
static inline size_t smaps_bytes(const char *name)
{
    char text[4096];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;

    CHECK(got > 0, "/proc/self/smaps_rollup cannot be read");
    fclose(file);
    text[got] = 0;
    const char *at = strstr(text, name);
    CHECK(at != NULL, "smaps_rollup has no %s", name);
    return strtoul(at + strlen(name), NULL, 10) * 1024;
}

/* musl's least stack has 2 KB, in which a thread can do next to nothing. */
static inline size_t least_stack(void)
{
    return PTHREAD_STACK_MIN > 16384 ? (size_t)PTHREAD_STACK_MIN : 16384;
}

static inline void start_thread(pthread_t *thread, void *(*body)(void *), void *data)
{
    int error = pthread_create(thread, NULL, body, data);
    CHECK(error == 0, "pthread_create: %s", strerror(error));
}

static inline void join_thread(pthread_t thread)
{
    int error = pthread_join(thread, NULL);
    CHECK(error == 0, "pthread_join: %s", strerror(error));
}

static inline void fill(void *block, int with, size_t bytes)
{
    memset(block, with, bytes);
    __asm__ volatile("" : : "r"(block) : "memory"); /* so that the stores before a free are not removed */
}

static inline bool filled(const void *block, int with, size_t bytes)
{
    const unsigned char *at = block;

    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)with)
            return false;
    return true;
}

/* EXPECT_CULET is set by the Makefile where the library is preloaded. */
TEST(served_by_the_expected_allocator)
{
    CHECK(on_culet() == (getenv("EXPECT_CULET") != NULL), "culet is %sactive", on_culet() ? "" : "not ");
}
