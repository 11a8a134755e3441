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
#include <sys/syscall.h>
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

/* Without a frame pointer a large frame is found by the stack pointer. */
__attribute__((noinline)) static int with_large_frame(void)
{
    volatile char frame[1 << 20];

    frame[0] = frame[sizeof frame - 1] = 1;
    look("large frame");
    return frame[0];
}

/* The frame address is stored in the frame, and an expression says where. */
__attribute__((noinline)) static int with_realigned_stack(size_t bytes)
{
    volatile char aligned[64] __attribute__((aligned(64)));
    char *block = alloca(bytes);

    CHECK((uintptr_t)aligned % 64 == 0, "the stack is not realigned");
    memset(block, 1, bytes);
    aligned[0] = 1;
    look("realigned stack");
    return block[bytes / 2] + aligned[0];
}

TEST(frames_of_other_shapes)
{
    CHECK_EQUAL(with_large_frame(), 1);
    CHECK_EQUAL(with_realigned_stack(100), 2);
}

__attribute__((noinline)) static void tail(const char *where)
{
    look(where);
    __asm__ volatile("");
}

__attribute__((noinline)) static void calls_last(const char *where)
{
    return tail(where);
}

TEST(tail_calls)
{
    calls_last("tail call");
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

#ifndef __SANITIZE_ADDRESS__
static void *in_small_thread(void *data)
{
    uintptr_t pcs[MOST];
    bool complete;
    size_t count = culet_unwind(pcs, MOST, &complete);

    CHECK(complete && count > 1 && count < 10, "%zu frames", count);
    return data;
}

TEST(threads_of_the_smallest_stack)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0, "no small stack");
    CHECK(pthread_create(&thread, &attributes, in_small_thread, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}
#endif

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

/* A register that is no frame pointer in code without call frame information: what is found is right, then it ends. */
void without_information(void (*function)(void));
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type without_information, @function\n"
        "without_information: push %rbp\n"
        "lea 4(%rsp), %rbp\n"
        "call *%rdi\n"
        "pop %rbp\n"
        "ret\n"
        ".size without_information, . - without_information\n"
        ".popsection");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".type without_information, %function\n"
        "without_information: stp x29, x30, [sp, #-16]!\n"
        "add x29, sp, #4\n"
        "blr x0\n"
        "ldp x29, x30, [sp], #16\n"
        "ret\n"
        ".size without_information, . - without_information\n"
        ".popsection");
#endif

static size_t found;
static bool ended;

static void from_assembly(void)
{
    uintptr_t pcs[MOST];

    found = culet_unwind(pcs, MOST, &ended);
    CHECK(pcs[1] - (uintptr_t)without_information < 32, "frame 1 is %#lx", pcs[1]);
}

TEST(code_without_information)
{
    without_information(from_assembly);
    CHECK(!ended && found == 2, "%zu frames", found);
}

TEST(functions_are_found)
{
    uintptr_t start, end;

    CHECK(culet_unwind_function((uintptr_t)with_alloca + 3, &start, &end), "the function is not known");
    CHECK_EQUAL(start, (uintptr_t)with_alloca);
    CHECK(end > start && end - start < 4096, "its end is %#lx", end);
    CHECK(!culet_unwind_function(16, &start, &end), "there is a function at 16");
}

#ifdef __x86_64__
/* ---- a signal's way back without call frame information ---- */

void own_return(void);
__asm__(".pushsection .text\n"
        ".type own_return, @function\n"
        "own_return: mov $15, %rax\n"
        "syscall\n"
        ".size own_return, . - own_return\n"
        ".popsection");

TEST(signal_handlers_of_programs_that_return_by_themselves)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {.handler = handle, .flags = 0x04000000 /* SA_RESTORER */, .restorer = own_return};

    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8) == 0, "no handler");
    raise(SIGUSR1);
}

/* ---- each instruction ---- */

static unsigned steps, followed;

/* Sets (256) or clears (0) the processor's trap flag, with which it traps after each instruction. */
void set_trap_flag(unsigned long flag);
__asm__(".pushsection .text\n"
        ".type set_trap_flag, @function\n"
        "set_trap_flag: .cfi_startproc\n"
        "pushfq\n"
        ".cfi_adjust_cfa_offset 8\n"
        "andq $~256, (%rsp)\n"
        "orq %rdi, (%rsp)\n"
        "popfq\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size set_trap_flag, . - set_trap_flag\n"
        ".popsection");

static void trapped(int signal)
{
    static uintptr_t pcs[MOST];
    static void *expected[MOST];
    bool complete;
    Dl_info last;

    (void)signal;
    steps++;
    size_t count = culet_unwind(pcs, MOST, &complete);
    followed += complete;
    /* What binds a function at its first call, in the dynamic linker, keeps its frame address in another register. */
    CHECK(complete || (dladdr((void *)pcs[count - 1], &last) && strstr(last.dli_fname, "/ld-")),
          "step %u: the stack ends after %zu frames at %#lx", steps, count, pcs[count - 1]);
    int glibc = backtrace(expected, MOST);
    for (size_t i = 1; i < count && complete; i++)
        CHECK(pcs[count - i] == (uintptr_t)expected[(size_t)glibc - i], "step %u: frame %zu is %#lx, not %p", steps,
              count - i, pcs[count - i], expected[(size_t)glibc - i]);
}

static int order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Prologues, epilogues, and the procedure linkage table. */
TEST(signals_at_every_instruction)
{
    int numbers[] = {5, 3, 4, 1, 2};
    struct sigaction action = {.sa_handler = trapped};
    void *frame[4];
    char text[64];

    backtrace(frame, 4); /* loads its library */
    sigaction(SIGTRAP, &action, NULL);
    set_trap_flag(256);
    qsort(numbers, 5, sizeof *numbers, order);
    snprintf(text, sizeof text, "%d %s", numbers[0], "text");
    set_trap_flag(0);
    CHECK(steps > 500 && followed > 500, "%u of %u stacks were followed to their end", followed, steps);
}
#endif

CHECK_MAIN
