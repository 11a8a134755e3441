/* Hardened processes: usable sizes, zeros, quarantine, guards, threads, forks, and the diagnostic of each misuse. */
#define _GNU_SOURCE
#include "checked.h"
#include "check.h"
#include "culet.h"
#include "empty_block.h"
#include "harden.h"
#include "heap.h"
#include "os.h"
#include "wakeup.h"

#include <pthread.h>

enum { THREADS = 4 };

/* The pointer, of which the compiler knows nothing. */
static void *hidden(void *block)
{
    __asm__ volatile("" : "+r"(block));
    return block;
}

static void harden(const char *level)
{
    setenv("CULET_HARDEN", level, 1);
    CHECK(culet_heap_state() == CULET_ACTIVE, "the heap is not active");
    CHECK(culet_harden_level == (unsigned)(level[0] - '0'), "level %u", culet_harden_level);
}

/* ---- misuses: in a child, whose diagnostic is read ---- */

/* The child ends by `signal_number` after a diagnostic with `text`. */
static void expect_end(void (*make)(void), int signal_number, const char *text)
{
    char got[1024] = "";
    size_t length = 0;
    ssize_t more;
    int ends[2], status;

    CHECK(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        make();
        _exit(0);
    }
    close(ends[1]);
    while ((more = read(ends[0], got + length, sizeof got - 1 - length)) > 0)
        length += (size_t)more;
    got[length] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    /* A sanitizer turns the signal into an exit. */
    CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0), "the misuse was not noticed; expected: %s", text);
    if (signal_number == SIGABRT)
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(got, text), "status %x, '%s' has no '%s'",
              (unsigned)status, got, text);
}

static void overflow_by_one(void)
{
    char *block = hidden(culet_malloc(41));
    block[41] ^= 1;
    culet_free(block);
}

static void overflow_then_realloc(void)
{
    char *block = hidden(culet_malloc(32));
    block[32] ^= 1;
    culet_realloc(block, 4000);
}

static void free_twice(void)
{
    void *block = culet_malloc(40);
    culet_free(block);
    culet_free(hidden(block));
}

static void realloc_freed(void)
{
    void *block = culet_malloc(40);
    culet_free(block);
    culet_realloc(hidden(block), 50);
}

static void write_after_free(void)
{
    char *block = hidden(culet_malloc(40));
    culet_free(block);
    *(char *)hidden(block) = 1;
    for (int i = 0; i < 2000000; i++)
        culet_free(culet_malloc(40));
}

static void wrong_size(void)
{
    culet_free_sized(culet_malloc(40), 39);
}

static void size_of_another_class(void)
{
    culet_free_sized(culet_malloc(40), 500);
}

static void alignment_of_another_block(void)
{
    culet_free_aligned_sized((char *)hidden(culet_aligned_alloc(64, 128)), 48, 128);
}

static void inside(void)
{
    culet_free((char *)hidden(culet_malloc(400)) + 16);
}

static void large_twice(void)
{
    void *block = culet_malloc(100000);
    culet_free(block);
    culet_free(hidden(block));
}

static void behind_large(void)
{
    volatile char *block = hidden(culet_malloc(65536 * 2));
    block[65536 * 2] = 1;
}

static void before_large(void)
{
    volatile char *block = hidden(culet_malloc(100000));
    block[-1] = 1;
}

static void read_freed_large(void)
{
    volatile char *block = hidden(culet_malloc(100000));
    culet_free((void *)block);
    (void)block[0];
}

static void write_no_bytes(void)
{
    volatile char *block = hidden(culet_malloc(0));
    block[0] = 1;
}

static void free_no_bytes_twice(void)
{
    void *block = culet_malloc(0);
    culet_free(block);
    culet_free(hidden(block));
}

static void underflow(void)
{
    char *block = hidden(culet_malloc(40));
    block[-1] = 0;
    culet_free(block);
}

static void overflow_then_request(void)
{
    char *block = hidden(culet_malloc(40));
    block[40] = 0;
    hidden(culet_malloc(500));
}

static void underflow_then_exit(void)
{
    char *block = hidden(culet_malloc(40));
    block[-32] ^= 1;
    culet_checked_at_exit();
}

/* Blocks that the parent has requested. */
static char *inherited;

static void free_inherited_twice(void)
{
    culet_free(inherited);
    culet_free(hidden(inherited));
}

static void overflow_of_inherited(void)
{
    inherited[48] ^= 1;
    culet_free(hidden(inherited));
}

static void large_misuses(void)
{
    expect_end(size_of_another_class, SIGABRT, "called with a size of 500 for a block of 4");
    expect_end(alignment_of_another_block, SIGABRT, "called with an alignment of 48, which is not a power of two\n");
    expect_end(large_twice, SIGABRT, "culet: double free of 0x");
    expect_end(inside, SIGABRT, "16 bytes into the ");
    expect_end(behind_large, SIGSEGV, "an access behind a large block");
    expect_end(before_large, SIGSEGV, "an access before a large block");
    expect_end(read_freed_large, SIGSEGV, "an access to a freed large block");
    expect_end(write_no_bytes, SIGSEGV, "an access to a block of no bytes");
    expect_end(free_no_bytes_twice, SIGABRT, "culet: free of 0x");
}

static void small_misuses(void)
{
    expect_end(overflow_by_one, SIGABRT, "have been overwritten\n");
    expect_end(overflow_then_realloc, SIGABRT, "culet: realloc of 0x");
    expect_end(free_twice, SIGABRT, "culet: double free of 0x");
    expect_end(realloc_freed, SIGABRT, " is already free\n");
    expect_end(wrong_size, SIGABRT, "called with a size of 39 for a block of 40\n");
    expect_end(write_after_free, SIGABRT, "culet: write after free of 0x");
    inherited = hidden(culet_malloc(48));
    expect_end(free_inherited_twice, SIGABRT, "culet: double free of 0x");
    expect_end(overflow_of_inherited, SIGABRT, "have been overwritten\n");
}

TEST(values_of_the_setting)
{
    CHECK(culet_harden_parse("1") == 1 && culet_harden_parse("3") == 3, "a level was refused");
    CHECK(!culet_harden_parse("") && !culet_harden_parse("0") && !culet_harden_parse("4") &&
              !culet_harden_parse("33") && !culet_harden_parse("-1") && !culet_harden_parse("on"),
          "no level, and accepted");
}

TEST(blocks_of_no_bytes_at_level_0)
{
    void *block[1000];

    CHECK(culet_heap_state() == CULET_ACTIVE, "the heap is not active");
    expect_end(write_no_bytes, SIGSEGV, "an access to a block of no bytes");
    expect_end(free_no_bytes_twice, SIGABRT, "among blocks of no bytes, and not one that is in use\n");
    for (int i = 0; i < 1000; i++) {
        block[i] = hidden(i % 2 ? culet_malloc(0) : culet_calloc(0, 8));
        CHECK(block[i] && (!i || block[i] != block[i - 1]), "no address, or the last one");
        CHECK_EQUAL(culet_malloc_usable_size(block[i]), 0);
        if (i % 3 == 0)
            memset(block[i] = culet_realloc(block[i], 40), 1, 40);
    }
    for (int i = 0; i < 1000; i++)
        culet_free(block[i]);
}

/* More than there are addresses for: the others are blocks of the smallest class. */
TEST(many_blocks_of_no_bytes)
{
    enum { MANY = 70000 };
    static void *block[MANY];

    for (int i = 0; i < MANY; i++)
        CHECK((block[i] = hidden(culet_malloc(0))), "no block");
    for (int i = 0; i < MANY; i++)
        culet_free(block[i]);
    CHECK(culet_empty_block_contains(hidden(culet_malloc(0))), "the addresses are not used again");
}

TEST(misuses_at_level_1)
{
    harden("1");
    large_misuses();
    expect_end(free_twice, SIGABRT, "culet: double free of 0x");
}

TEST(misuses_at_level_2)
{
    harden("2");
    large_misuses();
    small_misuses();
}

TEST(misuses_at_level_3)
{
    harden("3");
    large_misuses();
    small_misuses();
    expect_end(underflow, SIGABRT, "underflow: the bytes before the block");
    expect_end(overflow_then_request, SIGABRT, "culet: check of 0x");
    expect_end(underflow_then_exit, SIGABRT, "underflow: the bytes before the block");
}

/* ---- correct programs; the fuzzer has more ---- */

/* Frees of blocks of other threads fill the quarantine from all sides. */
static _Atomic(void *) slot[512];

static void *exchange(void *data)
{
    uint64_t random = (uintptr_t)data + 1;

    for (int i = 0; i < 30000; i++)
        culet_free(atomic_exchange(&slot[check_random(&random) % 512], culet_malloc(check_random(&random) % 300)));
    return NULL;
}

TEST(a_full_quarantine_beside_threads)
{
    pthread_t thread[THREADS];

    harden("2");
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, exchange, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 512; i++)
        culet_free(slot[i]);
    culet_heap_check();
    CHECK(culet_mallinfo2().uordblks <= 2 << 20, "%zu bytes are in quarantine", culet_mallinfo2().uordblks);
}

TEST(usable_bytes_are_the_requested_ones_from_level_2_on)
{
    harden("2");
    for (size_t bytes = 0; bytes <= 2000; bytes++) {
        void *block = culet_malloc(bytes);
        CHECK(culet_malloc_usable_size(block) == bytes, "%zu of %zu", culet_malloc_usable_size(block), bytes);
        culet_free(block);
    }
}

TEST(the_next_block_is_not_the_freed_one_nor_beside_the_last)
{
    int reused = 0, beside = 0;
    char *last = NULL;

    harden("1");
    for (int i = 0; i < 200; i++) {
        char *freed = culet_malloc(48), *next;
        culet_free(freed);
        next = hidden(culet_malloc(48));
        reused += next == freed;
        beside += last && next - last == 48;
        last = next;
    }
    CHECK(reused < 40 && beside < 40, "%d of 200 were reused, %d lay beside", reused, beside);
}

static unsigned refusals;

static bool refuse_next(void)
{
    return refusals && refusals--;
}

/* Without memory for its guards, a block is in a mapping that the heap keeps after the free, if it has a scavenger. */
TEST(the_contents_of_a_freed_huge_block_are_no_write_after_free)
{
    enum { HUGE = 3 << 20, SMALL = 30000 };

    harden("2");
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_ASLEEP);
    refusals = 1;
    culet_os_refuse = refuse_next;
    void *block = culet_malloc(HUGE);
    CHECK(block && !refusals, "%u refusals are left", refusals);
    culet_free(memset(block, 1, HUGE));
    for (int i = 0; i < 3 * HUGE / SMALL; i++)
        CHECK(culet_malloc(SMALL), "no memory");
}

CHECK_MAIN
