#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct culet_next culet_next;

static _Alignas(64) char early[16384];
static _Atomic size_t early_used;

void *culet_early_malloc(size_t bytes, size_t alignment)
{
    size_t start, end;
    size_t used = atomic_load(&early_used);

    if (bytes > sizeof early)
        return NULL;
    if (alignment < 16)
        alignment = 16;
    do {
        start = (((uintptr_t)early + used + alignment - 1) & ~(alignment - 1)) - (uintptr_t)early;
        end = start + (bytes ? bytes : 1);
        if (end > sizeof early)
            return NULL;
    } while (!atomic_compare_exchange_weak(&early_used, &used, end));
    return early + start;
}

size_t culet_early_left(const void *block)
{
    uintptr_t offset = (uintptr_t)block - (uintptr_t)early;

    return offset < sizeof early ? sizeof early - offset : 0;
}

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void *require(const char *name)
{
    static const char message[] = "culet: the allocator lacks a malloc function that culet forwards to; "
                                  "run the program with another --allocator\n";
    void *function = find(name);

    if (!function) {
        if (write(STDERR_FILENO, message, sizeof message - 1) < 0)
            _exit(127);
        abort();
    }
    return function;
}

bool culet_next_find(void)
{
    static _Thread_local bool busy;

    if (busy)
        return false;
    busy = true;
    culet_next.free = (void (*)(void *))require("free");
    culet_next.calloc = (void *(*)(size_t, size_t))require("calloc");
    culet_next.realloc = (void *(*)(void *, size_t))require("realloc");
    culet_next.memalign = (void *(*)(size_t, size_t))require("memalign");
    culet_next.aligned_alloc = (void *(*)(size_t, size_t))require("aligned_alloc");
    culet_next.posix_memalign = (int (*)(void **, size_t, size_t))require("posix_memalign");
    culet_next.free_sized = (void (*)(void *, size_t))find("free_sized");
    culet_next.free_aligned_sized = (void (*)(void *, size_t, size_t))find("free_aligned_sized");
    /* The last: culet_next_ready looks at it, also in another thread. */
    __atomic_store_n(&culet_next.malloc, (void *(*)(size_t))require("malloc"), __ATOMIC_RELEASE);
    busy = false;
    return true;
}
