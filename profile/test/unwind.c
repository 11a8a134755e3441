/* Native stacks, compared with glibc's. */
#define _GNU_SOURCE
#include "check.h"
#include "cfi.h"
#include "unwind.h"

#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#define MOST 256

/* Frame 0 is in the calling function, at another address. */
static void look(const char *where)
{
    uintptr_t pcs[MOST];
    void *expected[MOST];
    bool complete;
    size_t count = culet_unwind(pcs, MOST, &complete);
    int glibc = backtrace(expected, MOST);

    CHECK(complete, "%s: the stack was not followed to its end", where);
    /* From the outermost frame on: a sanitizer's backtrace has one more at the other end. */
    CHECK(count > 2 && (size_t)glibc >= count, "%s: %zu frames, glibc has %d", where, count, glibc);
    for (size_t i = 1; i < count; i++)
        CHECK(pcs[count - i] == (uintptr_t)expected[(size_t)glibc - i], "%s: frame %zu is %#lx, not %p", where,
              count - i, pcs[count - i], expected[(size_t)glibc - i]);
}

TEST(the_main_thread)
{
    look("main");
}

__attribute__((noinline)) static unsigned descend(unsigned depth)
{
    volatile char frame[64];

    memset((char *)frame, (int)depth, sizeof frame);
    if (depth)
        descend(depth - 1);
    else
        look("deep");
    return (unsigned)frame[3];
}

TEST(deep_recursion)
{
    descend(100);
}

__attribute__((noinline)) static int with_alloca(size_t bytes)
{
    char *block = alloca(bytes);

    memset(block, 1, bytes);
    look("alloca");
    return block[bytes / 2];
}

TEST(frames_of_variable_size)
{
    for (size_t bytes = 1; bytes < 100000; bytes *= 3)
        CHECK_EQUAL(with_alloca(bytes), 1);
}

static int compare(const void *a, const void *b)
{
    look("qsort");
    return *(const int *)a - *(const int *)b;
}

TEST(through_libc)
{
    int numbers[] = {3, 1, 2};

    qsort(numbers, 3, sizeof *numbers, compare);
}

static void handle(int signal)
{
    (void)signal;
    look("signal");
}

TEST(signal_handlers)
{
    struct sigaction action = {.sa_handler = handle};
    stack_t stack = {.ss_size = 1 << 18};

    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(sigaltstack(&stack, NULL) == 0, "no other stack");
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
}

static void *in_thread(void *data)
{
    look("thread");
    descend(20);
    return data;
}

TEST(threads)
{
    pthread_t thread[8];

    for (unsigned i = 0; i < 8; i++)
        CHECK(pthread_create(&thread[i], NULL, in_thread, NULL) == 0, "no thread");
    for (unsigned i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

/* As Ruby's fibers: a stack that is no thread's. */
static ucontext_t outside, within;

static void on_own_stack(void)
{
    uintptr_t pcs[MOST];
    bool complete;
    size_t count = culet_unwind(pcs, MOST, &complete);

    CHECK(count >= 1 && count < 10, "%zu frames", count);
    CHECK(pcs[0] - (uintptr_t)on_own_stack < 4096, "the first frame is in another function");
}

TEST(stacks_of_fibers)
{
    for (unsigned i = 0; i < 20; i++) {
        getcontext(&within);
        within.uc_stack.ss_size = 1 << 16;
        within.uc_stack.ss_sp = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        within.uc_link = &outside;
        makecontext(&within, on_own_stack, 0);
        swapcontext(&outside, &within);
        munmap(within.uc_stack.ss_sp, 1 << 16);
        look("outside again");
    }
}

/* Code without tables, as a JIT compiler makes it: with a frame pointer it is passed through, without one the stack ends. */
#ifdef __x86_64__
static size_t frames;
static bool all_of_it;

static void from_generated(void)
{
    uintptr_t pcs[MOST];

    frames = culet_unwind(pcs, MOST, &all_of_it);
}

TEST(generated_code)
{
    /* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
    static const unsigned char with_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    /* push %rbp; sub $256, %rsp; xor %ebp, %ebp; call *%rdi; add $256, %rsp; pop %rbp; ret */
    static const unsigned char without[] = {0x55, 0x48, 0x81, 0xec, 0, 1, 0, 0, 0x31, 0xed, 0xff,
                                            0xd7, 0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x5d, 0xc3};
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t pcs[MOST];
    bool complete;

    CHECK(code != MAP_FAILED, "no memory for code");
    size_t own = culet_unwind(pcs, MOST, &complete);
    memcpy(code, with_pointer, sizeof with_pointer);
    ((void (*)(void (*)(void)))(uintptr_t)code)(from_generated);
    CHECK(all_of_it && frames == own + 2, "%zu frames, %zu below", frames, own);
    memcpy(code, without, sizeof without);
    ((void (*)(void (*)(void)))(uintptr_t)code)(from_generated);
    CHECK(!all_of_it && frames == 2, "%zu frames", frames);
}
#endif

TEST(functions_are_found)
{
    uintptr_t start, end;

    CHECK(culet_unwind_function((uintptr_t)with_alloca + 3, &start, &end), "the function is not known");
    CHECK_EQUAL(start, (uintptr_t)with_alloca);
    CHECK(end > start && end - start < 4096, "its end is %#lx", end);
    CHECK(!culet_unwind_function(16, &start, &end), "there is a function at 16");
}

/* ---- damaged tables ---- */

static uint64_t seed = 88172645463325252u;

static uint64_t random_below(uint64_t limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
}

/* A copy of libc's tables at the same distances from each other, with some bytes changed, at the end of a mapping: a read
 * beyond it ends the test. */
TEST(damaged_tables_are_survived)
{
    struct culet_module module;
    struct culet_rule rule;
    struct culet_function function;
    struct culet_readable readable = {{0}};
    unsigned found = 0;

    CHECK(culet_module_find((uintptr_t)qsort, &module, &readable) && module.table, "libc has no table");
    size_t page = 4096, bytes = (module.end - module.start + page - 1) & -page;
    char *copy = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(copy != MAP_FAILED && mprotect(copy + bytes, page, PROT_NONE) == 0, "no memory");
    /* From the table to the end of its segment; what lies behind may not be readable. */
    uintptr_t last = module.table;
    while (last < module.end && last - module.table < 1 << 20 && msync((void *)(last & -page), page, MS_ASYNC) == 0 &&
           ((last & -page) + page - module.start <= bytes))
        last = (last & -page) + page;
    size_t at = module.table - module.start, size = last - module.table;
    for (unsigned round = 0; round < 300; round++) {
        memcpy(copy + at, (const void *)module.table, size);
        for (uint64_t changes = random_below(60); changes; changes--)
            copy[at + random_below(changes % 2 ? 64 : size)] ^= (char)(1u << random_below(8));
        struct culet_module damaged = {(uintptr_t)copy, (uintptr_t)copy + at + size, (uintptr_t)copy + at};
        for (unsigned i = 0; i < 200; i++)
            found += culet_cfi_find(&damaged, (uintptr_t)copy + random_below(at), &rule, &function, &readable);
    }
    CHECK(found > 1000, "only %u functions were found", found);
}

CHECK_MAIN
