/* misuse.c - mistakes that must end with a diagnostic and SIGABRT. `misuse NAME` makes one of them, `misuse` lists all
 * with the expected diagnostic. misuse.sh inserts the addresses that the program prints into it. Built with -O0. */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct misuse {
    const char *name, *expected;
    void (*make)(void);
} misuses[64];
static unsigned misuse_count;

/* Defines and registers a misuse; the body follows. */
#define MISUSE(title, diagnostic)                                                                                      \
    static void title(void);                                                                                           \
    __attribute__((constructor)) static void register_##title(void)                                                    \
    {                                                                                                                  \
        misuses[misuse_count++] = (struct misuse){#title, "culet: " diagnostic, title};                                \
    }                                                                                                                  \
    static void title(void)

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

/* At the second free the block is in the thread's own claim. */
MISUSE(double_free_claimed, "double free of {p}: " BLOCK_640 IS_FREE)
{
    static void *block[400];
    for (int i = 0; i < 400; i++)
        block[i] = malloc(640);
    void *a = block[200], *b = block[201], *got = NULL;
    free(a);
    free(b);
    /* Of two free blocks of a unit one is given out when the unit is claimed; the other stays claimed. */
    for (int i = 0; i < 400 && got != a && got != b; i++)
        got = malloc(640);
    need(got == a || got == b, "the freed unit was claimed");
    void *p = got == a ? b : a;
    name("p", p);
    free(p);
}

/* Freed into the unit that this thread has claimed, then freed by another thread. */
MISUSE(double_free_own_unit, "double free of {p}: " BLOCK_640 IS_FREE)
{
    void *p = get(640);
    free(p);
    on_thread(free_body, p);
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

/* The thread that allocated and freed the block, and had claimed its neighbours, has ended. */
MISUSE(double_free_ended_thread, "double free of {p}: the 208-byte block {p} (size class 208)" IS_FREE)
{
    void *p;
    on_thread(allocate_and_free, &p);
    name("p", p);
    free(p);
}

static pthread_barrier_t claimed;

static void *claim(void *data)
{
    void **slot = data;
    *slot = malloc(640);
    pthread_barrier_wait(&claimed);
    pause();
    return NULL;
}

/* A block of 640 bytes that another thread has claimed, and not given out. */
static void free_claimed_by_another(void)
{
    pthread_t thread;
    void *first;

    pthread_barrier_init(&claimed, NULL, 2);
    need(pthread_create(&thread, NULL, claim, &first) == 0, "a thread");
    pthread_barrier_wait(&claimed);
    void *p = (char *)first + 640;
    name("p", p);
    free(p);
}

/* Never given out. */
MISUSE_BY(free_claimed_by_another(), free_other_cache, "double free of {p}: " BLOCK_640 IS_FREE)

/* Freed here before the other thread claimed it. */
MISUSE(double_free_other_cache, "double free of {p}: " BLOCK_640 IS_FREE)
{
    static void *block[64];
    for (int i = 0; i < 64; i++)
        block[i] = malloc(640);
    for (int i = 0; i < 64; i++)
        free(block[i]);
    malloc_trim(0);
    free_claimed_by_another();
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

MISUSE(free_sized_wrong, "free_sized of {p}: called with a size of 500 for a block of 112")
{
    free_sized_by(get(SMALL), 500);
}

MISUSE(free_aligned_sized_wrong, "free_aligned_sized of {p}: called with a size of 500 for a block of 128")
{
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    need(free_aligned_sized != NULL, "free_aligned_sized");
    void *p = aligned_alloc(64, 128);
    name("p", p);
    free_aligned_sized(p, 64, 500);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < misuse_count; i++)
        if (argc < 2)
            printf("%s\t%s\n", misuses[i].name, misuses[i].expected);
        else if (strcmp(argv[1], misuses[i].name) == 0)
            misuses[i].make();
}
