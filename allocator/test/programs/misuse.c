/* misuse.c - mistakes that must end with a diagnostic, most of them by SIGABRT. `misuse NAME` makes one of them, `misuse`
 * lists all with the expected status and diagnostic. misuse.sh inserts the addresses that the program prints into it. Built with -O0. */
#include "libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct misuse {
    const char *name, *expected;
    int status;
    void (*make)(void);
} misuses[80];
static unsigned misuse_count;

/* Defines and registers a misuse after which the program ends by `status`; the body follows. */
#define MISUSE_ENDING_BY(status, title, diagnostic)                                                                    \
    static void title(void);                                                                                           \
    __attribute__((constructor)) static void register_##title(void)                                                    \
    {                                                                                                                  \
        misuses[misuse_count++] = (struct misuse){#title, "culet: " diagnostic, status, title};                        \
    }                                                                                                                  \
    static void title(void)

/* 128 + SIGABRT, as a shell has it. */
#define MISUSE(title, diagnostic) MISUSE_ENDING_BY(134, title, diagnostic)

/* A misuse of one call. */
#define MISUSE_BY(call, title, diagnostic)                                                                             \
    MISUSE(title, diagnostic)                                                                                          \
    {                                                                                                                  \
        call;                                                                                                          \
    }

/* Sizes: of a block in a slab, of a large block, of a huge one. */
enum { SMALL = 100, LARGE = 100000, HUGE = 3 << 20 };

#define SMALL_BLOCK "the 112-byte block {p} (size class 112)"
#define LARGE_BLOCK "the 102400-byte block {p} (large)"
#define HUGE_BLOCK "the 3145728-byte block {p} (large)"
#define BLOCK_640 "the 640-byte block {p} (size class 640)"
#define IS_FREE " is already free"
#define IN(bytes, block) "free of {q}: it points " bytes " into " block ", not at its start"
#define IN_FREED(bytes, block) "free of {q}: it points " bytes " into " block ", which is free"
#define FOREIGN "not a culet block; "

/* Prints an address for the diagnostic. Without stdio's buffer, which would be a block too. */
static void name(const char *what, const void *address)
{
    dprintf(STDOUT_FILENO, "%s=%p\n", what, address);
}

/* The program could not reach the state for its mistake. */
static void need(int met, const char *what)
{
    if (met)
        return;
    dprintf(STDERR_FILENO, "not in the state to test: %s\n", what);
    exit(1);
}

static void *get(size_t bytes)
{
    void *p = malloc(bytes);
    name("p", p);
    return p;
}

static void free_twice(size_t bytes)
{
    void *p = get(bytes);
    free(p);
    free(p);
}

static void free_inside(size_t bytes, size_t offset)
{
    char *q = (char *)get(bytes) + offset;
    name("q", q);
    free(q);
}

static void free_inside_freed(size_t bytes, size_t offset)
{
    char *p = get(bytes), *q = p + offset;
    name("q", q);
    free(p);
    free(q);
}

static void realloc_freed(size_t bytes)
{
    void *p = get(bytes);
    free(p);
    need(realloc(p, bytes * 2) != NULL, "unreachable");
}

static void realloc_inside(size_t bytes, size_t offset)
{
    char *q = (char *)get(bytes) + offset;
    name("q", q);
    need(realloc(q, 200) != NULL, "unreachable");
}

static void free_named(void *q)
{
    name("q", q);
    free(q);
}

static void *map(void *at, size_t bytes, int protection, int flags)
{
    void *q = mmap(at, bytes, protection, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(q != MAP_FAILED, "a mapping");
    return q;
}

static void on_thread(void *(*body)(void *), void *data)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, body, data) == 0, "a thread");
    need(pthread_join(thread, NULL) == 0, "the thread's end");
}

static void *free_body(void *block)
{
    free(block);
    return NULL;
}

/* ---- double frees ---- */

MISUSE_BY(free_twice(SMALL), double_free, "double free of {p}: " SMALL_BLOCK IS_FREE)
/* A heap of 80 MB, in which frees are deferred. */
static void enlarge(void)
{
    for (size_t bytes = 0; bytes < 80 << 20; bytes += 1000)
        need(malloc(1000) != NULL, "memory");
}

/* Eight frees later at most. */
MISUSE(double_free_in_a_large_heap, "double free of {p}: " SMALL_BLOCK IS_FREE)
{
    void *volatile block[6];

    enlarge();
    for (int i = 0; i < 6; i++)
        block[i] = malloc(SMALL);
    free_twice(SMALL);
    for (int i = 0; i < 6; i++)
        free(block[i]);
    need(0, "reported");
}

MISUSE(double_free_in_a_large_heap_before_the_end, "double free of {p}: " SMALL_BLOCK IS_FREE)
{
    enlarge();
    free_twice(SMALL);
    exit(0);
}

MISUSE(free_interior_in_a_large_heap, IN("16 bytes", SMALL_BLOCK))
{
    enlarge();
    free_inside(SMALL, 16);
}

MISUSE_BY(free_twice(LARGE), double_free_large, "double free of {p}: " LARGE_BLOCK IS_FREE)
MISUSE_BY(free_twice(HUGE), double_free_huge, "double free of {p}: " HUGE_BLOCK IS_FREE)

/* The heap is large and has a scavenger, so the block's pages are cached. */
MISUSE(double_free_huge_cached, "double free of {p}: " HUGE_BLOCK IS_FREE)
{
    void *volatile block[20];

    for (int i = 0; i < 20; i++)
        block[i] = malloc(900000);
    for (int i = 0; i < 20; i++)
        free(block[i]);
    free_twice(HUGE);
}

/* A foreign mapping has taken the freed block's address. */
MISUSE(double_free_huge_reused, "double free of {p}: " HUGE_BLOCK IS_FREE)
{
    void *p = get(HUGE);
    free(p);
    need(map(p, 4096, PROT_READ | PROT_WRITE, MAP_FIXED) == p, "a mapping");
    free(p);
}

/* realloc has moved the block's pages; the old address is freed. */
MISUSE(double_free_moved_huge, "double free of {p}: " HUGE_BLOCK IS_FREE)
{
    char *p = get(HUGE);
    /* So that the block cannot grow in place. */
    map(p + HUGE, 65536, PROT_NONE, 0);
    void *q = realloc(p, 64 << 20);
    need(q && q != p, "the block moved");
    free(p);
}

MISUSE(double_free_realloc_zero, "double free of {p}: " SMALL_BLOCK IS_FREE)
{
    void *p = get(SMALL);
    need(realloc(p, 0) == NULL, "realloc to 0 bytes frees");
    free(p);
}

/* Other blocks are allocated in between, and the freed one is not reused. */
MISUSE(double_free_between, "double free of {p}: the 48-byte block {p} (size class 48)" IS_FREE)
{
    static void *block[300];
    for (int i = 0; i < 300; i++)
        block[i] = malloc(48);
    void *p = block[2];
    name("p", p);
    free(p);
    for (size_t size = 64; size < 5000; size += 100)
        need(malloc(size) != p, "other blocks of other sizes");
    need(malloc(48) != p, "another block of the same size");
    free(p);
}

/* The block was handed out again and freed again, beside others of its unit. */
MISUSE(double_free_reused, "double free of {p}: " BLOCK_640 IS_FREE)
{
    static void *block[400];
    for (int i = 0; i < 400; i++)
        block[i] = malloc(640);
    void *p = block[200], *got = NULL;
    free(p);
    for (int i = 0; i < 1000 && got != p; i++)
        got = malloc(640);
    need(got == p, "the freed block was handed out again");
    name("p", p);
    free(p);
    free(p);
}

static void *allocate_and_free_twice(void *block)
{
    need(malloc(640) == block, "the thread goes on in the arena of the first one");
    free(block);
    free(block);
    return NULL;
}

/* Freed into the current unit, then by a thread that takes the arena over. */
MISUSE(double_free_taken_over, "double free of {p}: " BLOCK_640 IS_FREE)
{
    /* So that the slab is in use: the new thread's memory could lie in the pages of an unused one. */
    void *keep = malloc(640), *p = get(640);
    need(keep != NULL, "a block");
    free(p);
    on_thread(free_body, p);
}

MISUSE(double_free_twice_taken_over, "double free of {p}: " BLOCK_640 IS_FREE)
{
    void *keep = malloc(640), *p = get(640);
    need(keep != NULL, "a block");
    free(p);
    on_thread(allocate_and_free_twice, p);
}

MISUSE(double_free_threads, "double free of {p}: " SMALL_BLOCK IS_FREE)
{
    void *p = get(SMALL);
    on_thread(free_body, p);
    on_thread(free_body, p);
}

static void *allocate_and_free(void *data)
{
    void **slot = data;
    void *keep = malloc(200);
    *slot = malloc(200);
    need(keep && *slot, "two blocks");
    free(*slot);
    return keep;
}

/* The thread that allocated and freed the block has ended. */
MISUSE(double_free_ended_thread, "double free of {p}: the 208-byte block {p} (size class 208)" IS_FREE)
{
    void *p;
    on_thread(allocate_and_free, &p);
    name("p", p);
    free(p);
}

/* Never handed out: the next block of the current unit. */
MISUSE(free_next_block, "double free of {p}: " BLOCK_640 IS_FREE)
{
    char *first = malloc(640), *p = first + 640;
    name("p", p);
    free(p);
}

/* ---- threads that hold an arena of their own: frees by the remote words ----
 *
 * A signal stops one thread inside its arena; the other one gets another arena, which it keeps. */

enum { OTHER = 1500 }; /* a size that nothing else in the program has */

static _Atomic int stopped, go_on, apart;

static struct other {
    pthread_t first;
    char *near;
    void *volatile task; /* to free */
    volatile int frees;
} other;

static void stop_here(int signal)
{
    (void)signal;
    stopped = 1;
    while (!go_on)
        usleep(100);
    stopped = 0;
}

/* Allocates until the block lies in another slab than those of the first thread, which is stopped. */
static void move_apart(void)
{
    for (int i = 0; i < 100000 && !apart; i++) {
        go_on = 0;
        need(pthread_kill(other.first, SIGUSR1) == 0, "a signal");
        while (!stopped)
            usleep(10);
        /* Several requests for the arena with the other thread inside, then one that is far from the first's. */
        char *near = other.near, *mine = malloc(OTHER);
        apart = mine < near - (256 << 10) || mine > near + (256 << 10);
        go_on = 1;
        while (stopped)
            usleep(100);
    }
    need(apart, "another arena");
}

static void *free_apart(void *data)
{
    (void)data;
    move_apart();
    for (;;) {
        while (!other.frees)
            usleep(100);
        free(other.task);
        other.frees--;
    }
    return NULL;
}

/* A thread with an arena of its own is ready. */
static void begin_other(void)
{
    static void *block[64];
    pthread_t thread;

    signal(SIGUSR1, stop_here);
    other.first = pthread_self();
    other.near = malloc(OTHER);
    need(pthread_create(&thread, NULL, free_apart, NULL) == 0, "a thread");
    for (unsigned i = 0; !apart; i++) {
        free(block[i % 64]);
        block[i % 64] = malloc(640);
    }
}

static void free_there(void *p, int times)
{
    other.task = p;
    other.frees = times;
    while (other.frees)
        usleep(100);
}

static void *get_beside_other(void)
{
    begin_other();
    void *p = malloc(640), *keep = malloc(640);
    need(p && keep, "two blocks");
    name("p", p);
    return p;
}

MISUSE(double_free_remote_remote, "double free of {p}: " BLOCK_640 IS_FREE)
{
    free_there(get_beside_other(), 2);
}

MISUSE(double_free_remote_local, "double free of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get_beside_other();
    free_there(p, 1);
    free(p);
}

MISUSE(double_free_local_remote, "double free of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get_beside_other();
    free(p);
    free_there(p, 1);
}

/* Collected, and free in the unit then. */
MISUSE(double_free_remote_collected, "double free of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get_beside_other();
    free_there(p, 1);
    malloc_trim(0);
    free(p);
}

MISUSE(double_free_remote_collected_remote, "double free of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get_beside_other();
    free_there(p, 1);
    malloc_trim(0);
    free_there(p, 1);
}

MISUSE(realloc_freed_remotely, "realloc of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get_beside_other();
    free_there(p, 1);
    need(realloc(p, 2000) != NULL, "unreachable");
}

MISUSE(usable_size_freed_remotely, "malloc_usable_size of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get_beside_other();
    free_there(p, 1);
    need(malloc_usable_size(p) != 0, "unreachable");
}

/* All blocks of the slab were freed, and the slab was destroyed. */
MISUSE(double_free_slab_gone, "double free of {p}: " BLOCK_640 IS_FREE)
{
    static void *block[1000];
    for (int i = 0; i < 1000; i++)
        block[i] = malloc(640);
    name("p", block[77]);
    for (int i = 0; i < 1000; i++)
        free(block[i]);
    malloc_trim(0);
    free(block[77]);
}

/* Freed by the parent before the fork, by the child after it. */
MISUSE(double_free_in_child, "double free of {p}: " SMALL_BLOCK IS_FREE)
{
    void *p = get(SMALL);
    free(p);
    pid_t child = fork();
    need(child >= 0, "a child");
    if (child == 0) {
        free(p);
        _exit(0);
    }
    int status;
    need(waitpid(child, &status, 0) == child, "the child's end");
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
}

/* ---- pointers into blocks ---- */

MISUSE_BY(free_inside(SMALL, 16), free_interior, IN("16 bytes", SMALL_BLOCK))
MISUSE_BY(free_inside(LARGE, 8192), free_interior_large, IN("8192 bytes", LARGE_BLOCK))
MISUSE_BY(free_inside(HUGE, 2 << 20), free_interior_huge, IN("2097152 bytes", HUGE_BLOCK))
MISUSE_BY(free_inside(SMALL, 1), free_misaligned,
          "free of {q}: misaligned, it points 1 byte into " SMALL_BLOCK ", not at its start")
MISUSE_BY(free_inside(HUGE, 8), free_misaligned_huge,
          "free of {q}: misaligned, it points 8 bytes into " HUGE_BLOCK ", not at its start")
MISUSE_BY(free_inside_freed(SMALL, 16), free_interior_freed, IN_FREED("16 bytes", SMALL_BLOCK))
MISUSE_BY(free_inside_freed(LARGE, 8192), free_interior_freed_large, IN_FREED("8192 bytes", LARGE_BLOCK))

/* The pointer to a header that an aligning wrapper would have kept before the block. */
MISUSE(free_before_aligned,
       "free of {q}: it points 4032 bytes into the 4096-byte block {b} (size class 4096), not at its start")
{
    char *a = aligned_alloc(4096, 4096), *b = aligned_alloc(4096, 4096);
    char *low = a < b ? a : b, *high = a < b ? b : a;
    need(high - low == 4096, "two neighbouring blocks");
    name("b", low);
    free_named(high - 64);
}

static int by_address(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

MISUSE(free_past_last, "free of {q}: it points past the last block of a slab (size class 272)")
{
    static char *block[2000];
    int i;
    for (i = 0; i < 2000; i++)
        block[i] = malloc(272);
    qsort(block, 2000, sizeof *block, by_address);
    /* 272 bytes divide no number of pages that a slab may have: each slab ends with a remainder. */
    for (i = 0; i < 1999; i++)
        if (block[i + 1] - block[i] > 272 && block[i + 1] - block[i] < 272 * 2)
            break;
    need(i < 1999, "two neighbouring slabs");
    free_named(block[i] + 272);
}

/* The first block of a slab that does not begin at its page's start. Stores all blocks, by address. */
static char *behind_page_start(char **block, int count)
{
    for (int i = 0; i < count; i++)
        block[i] = malloc(1024);
    qsort(block, (size_t)count, sizeof *block, by_address);
    for (int i = 1; i < count; i++)
        if ((uintptr_t)block[i] % 1024 && block[i] - block[i - 1] != 1024)
            return block[i];
    need(0, "a slab with some cache lines before its first block");
    return NULL;
}

MISUSE(free_before_first, "free of {q}: it points before the first block of a slab (size class 1024)")
{
    static char *block[2000];
    free_named(behind_page_start(block, 2000) - 64);
}

MISUSE(free_in_destroyed_slab, "double free of {p}: the 1024-byte block {p} (size class 1024)" IS_FREE)
{
    static char *block[2000];
    char *again = behind_page_start(block, 2000) + 1024;
    name("p", again);
    for (int i = 0; i < 2000; i++)
        free(block[i]);
    free(again);
}

MISUSE(free_before_first_of_destroyed, "free of {q}: it points before the first block of a slab (size class 1024)")
{
    static char *block[2000];
    char *before = behind_page_start(block, 2000) - 64;
    name("q", before);
    for (int i = 0; i < 2000; i++)
        free(block[i]);
    free(before);
}

/* ---- foreign pointers ---- */

static long data[64] = {1};

MISUSE(free_static, "free of {q}: " FOREIGN "it lies in {program}")
{
    free_named(data);
}

MISUSE(free_stack, "free of {q}: " FOREIGN "it lies on this thread's stack")
{
    long on_stack[4] = {0};
    free_named(on_stack);
}

static void *free_on_stack(void *unused)
{
    (void)unused;
    free_stack();
    return NULL;
}

MISUSE(free_thread_stack, "free of {q}: " FOREIGN "it lies on this thread's stack")
{
    on_thread(free_on_stack, NULL);
}

/* The break belongs to glibc's allocator, which does not serve this process. */
MISUSE(free_brk, "free of {q}: " FOREIGN "it lies in [heap]")
{
    char *q = sbrk(65536);
    need(q != (char *)-1, "room at the break");
    free_named((char *)(((uintptr_t)q + 15) & ~(uintptr_t)15));
}

MISUSE(free_mapping, "free of {q}: " FOREIGN "it lies in an anonymous mapping")
{
    /* Read-only, so that it merges with no other mapping. */
    free_named(map(NULL, 65536, PROT_READ, 0));
}

MISUSE(free_file_mapping, "free of {q}: " FOREIGN "it lies in {program}")
{
    void *q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), 0);
    need(q != MAP_FAILED, "a mapping of the program's file");
    free_named(q);
}

MISUSE(free_unmapped, "free of {q}: " FOREIGN "nothing is mapped there")
{
    /* So that the heap is set up, and does not take the address of the mapping. */
    need(malloc(48) != NULL, "a block");
    void *q = map(NULL, 1 << 20, PROT_READ | PROT_WRITE, 0);
    need(munmap(q, 1 << 20) == 0, "the mapping's end");
    free_named(q);
}

MISUSE(free_small_number, "free of 0x10: " FOREIGN "nothing is mapped there")
{
    free((void *)16);
}

MISUSE(free_not_canonical, "free of 0xfffffffffffffff0: " FOREIGN "nothing is mapped there")
{
    free((void *)~(uintptr_t)15);
}

/* ---- other functions ---- */

MISUSE_BY(realloc_freed(SMALL), realloc_freed_small, "realloc of {p}: " SMALL_BLOCK IS_FREE)
MISUSE_BY(realloc_freed(LARGE), realloc_freed_large, "realloc of {p}: " LARGE_BLOCK IS_FREE)
MISUSE_BY(realloc_freed(HUGE), realloc_freed_huge, "realloc of {p}: " HUGE_BLOCK IS_FREE)
MISUSE_BY(realloc_inside(SMALL, 16), realloc_interior,
          "realloc of {q}: it points 16 bytes into " SMALL_BLOCK ", not at its start")
MISUSE_BY(realloc_inside(LARGE, 4096), realloc_interior_large,
          "realloc of {q}: it points 4096 bytes into " LARGE_BLOCK ", not at its start")

MISUSE(realloc_foreign, "realloc of {q}: " FOREIGN "it lies in {program}")
{
    name("q", data);
    need(realloc(data, 1000) != NULL, "unreachable");
}

MISUSE(usable_size_freed, "malloc_usable_size of {p}: " SMALL_BLOCK IS_FREE)
{
    void *p = get(SMALL);
    free(p);
    need(malloc_usable_size(p) != 0, "unreachable");
}

MISUSE(usable_size_foreign, "malloc_usable_size of {q}: " FOREIGN "it lies on this thread's stack")
{
    long on_stack[4] = {0};
    name("q", on_stack);
    need(malloc_usable_size(on_stack) != 0, "unreachable");
}

static void free_sized_by(void *p, size_t bytes)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    need(free_sized != NULL, "free_sized");
    free_sized(p, bytes);
}

MISUSE(free_sized_freed, "free_sized of {p}: " SMALL_BLOCK IS_FREE)
{
    void *p = get(SMALL);
    free_sized_by(p, SMALL);
    free_sized_by(p, SMALL);
}

/* The block is freed all the same: the next request returns it. */
#define REPORTED(title, diagnostic)                                                                                    \
    MISUSE_ENDING_BY(0, title, diagnostic "; freed nevertheless, and not reported again")

static void need_free(void *p, size_t bytes)
{
    need(malloc(bytes) == p, "the block is free");
}

REPORTED(free_sized_wrong, "free_sized of {p}: called with a size of 500 for a block of 112")
{
    void *p = get(SMALL);
    free_sized_by(p, 500);
    need_free(p, SMALL);
}

REPORTED(free_sized_too_small, "free_sized of {p}: called with a size of 60 for a block of 112")
{
    void *p = get(SMALL);
    free_sized_by(p, 60);
    need_free(p, SMALL);
}

REPORTED(free_sized_wrong_often, "free_sized of {p}: called with a size of 60 for a block of 112")
{
    void *p = get(SMALL);
    free_sized_by(p, 60);
    for (int i = 0; i < 1000; i++) {
        errno = i;
        free_sized_by(malloc(SMALL), i % 2 ? 60 : 500);
        need(errno == i, "errno is as before");
    }
    need_free(p, SMALL);
}

REPORTED(free_sized_of_a_large_block, "free_sized of {p}: called with a size of 50000 for a block of 102400")
{
    void *p = get(100000);
    free_sized_by(p, 50000);
    need_free(p, 100000);
}

MISUSE(free_sized_inside, "free_sized of {q}: it points 16 bytes into " SMALL_BLOCK ", not at its start")
{
    char *p = get(SMALL);
    name("q", p + 16);
    free_sized_by(p + 16, SMALL);
}

static void free_aligned_sized_by(void *p, size_t alignment, size_t bytes)
{
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    need(free_aligned_sized != NULL, "free_aligned_sized");
    free_aligned_sized(p, alignment, bytes);
}

MISUSE(free_aligned_sized_inside,
       "free_aligned_sized of {q}: it points 16 bytes into " SMALL_BLOCK ", not at its start")
{
    char *p = get(SMALL);
    name("q", p + 16);
    free_aligned_sized_by(p + 16, 1024, SMALL);
}

static void *get_aligned(size_t alignment, size_t bytes)
{
    void *p = aligned_alloc(alignment, bytes);
    name("p", p);
    return p;
}

REPORTED(free_aligned_sized_wrong, "free_aligned_sized of {p}: called with a size of 500 for a block of 128")
{
    free_aligned_sized_by(get_aligned(64, 128), 64, 500);
}

REPORTED(free_aligned_sized_too_small, "free_aligned_sized of {p}: called with a size of 60 for a block of 128")
{
    free_aligned_sized_by(get_aligned(64, 128), 64, 60);
}

REPORTED(free_aligned_sized_unaligned,
         "free_aligned_sized of {p}: called with an alignment of 32768, which the block does not have")
{
    char *p = aligned_alloc(32768, 100000), *q = malloc(100000), *r = malloc(100000);
    char *one = (uintptr_t)q % 32768 ? q : r;
    need(p && q && r && (uintptr_t)one % 32768, "a block of 102,400 bytes that is not aligned");
    name("p", one);
    free_aligned_sized_by(one, 32768, 100000);
}

REPORTED(free_aligned_sized_not_a_power,
         "free_aligned_sized of {p}: called with an alignment of 48, which is not a power of two")
{
    free_aligned_sized_by(get_aligned(64, 128), 48, 128);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < misuse_count; i++)
        if (argc < 2)
            printf("%s\t%d\t%s\n", misuses[i].name, misuses[i].status, misuses[i].expected);
        else if (strcmp(argv[1], misuses[i].name) == 0)
            misuses[i].make();
}
