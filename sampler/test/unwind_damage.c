/* Stacks and tables that are damaged: no read may end the program. */
#define _GNU_SOURCE
#include "check.h"
#include "cfi.h"
#include "unwind.h"

#include <sys/mman.h>
#include <ucontext.h>

#define MOST 256
#define PAGE ((size_t)65536) /* a multiple of every kernel's */

/* ---- stacks ---- */

/* Calls a function with a frame pointer, in code without call frame information. */
void call_with_fp(void (*function)(void), uintptr_t fp);
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type call_with_fp, @function\n"
        "call_with_fp: push %rbp\n"
        "mov %rsi, %rbp\n"
        "call *%rdi\n"
        "pop %rbp\n"
        "ret\n"
        ".size call_with_fp, . - call_with_fp\n"
        ".popsection");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".type call_with_fp, %function\n"
        "call_with_fp: stp x29, x30, [sp, #-16]!\n"
        "mov x29, x1\n"
        "blr x0\n"
        "ldp x29, x30, [sp], #16\n"
        "ret\n"
        ".size call_with_fp, . - call_with_fp\n"
        ".popsection");
#endif

static size_t frames;
static bool complete;

static void walk(void)
{
    uintptr_t pcs[MOST];

    frames = culet_unwind(pcs, MOST, &complete);
}

static char *map(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED, "no memory");
    return memory;
}

TEST(frame_pointers_may_point_anywhere)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), page = (uintptr_t)map(3 * PAGE);
    uint64_t seed = 1;

    CHECK(mprotect((void *)(page + PAGE), PAGE, PROT_NONE) == 0, "no gap");
    uintptr_t places[] = {0,
                          1,
                          8,
                          page,
                          page + PAGE - 8,
                          page + PAGE,
                          page + PAGE + 64,
                          here + 1,
                          here - 64,
                          here + 4096,
                          UINTPTR_MAX,
                          UINTPTR_MAX - 7,
                          here | 7,
                          here + (8 << 20),
                          here ^ ((uintptr_t)1 << 63),
                          (uintptr_t)1 << 47,
                          ((uintptr_t)1 << 47) - 8};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        call_with_fp(walk, places[i]);
        CHECK(frames >= 2 && (frames == 2 || complete || frames < MOST), "%#lx: %zu frames", places[i], frames);
    }
    for (unsigned i = 0; i < 20000; i++) {
        call_with_fp(walk, here + (check_random(&seed) % (4 << 20) & ~(uint64_t)7));
        CHECK(frames >= 2, "%zu frames", frames);
    }
}

#ifdef __GLIBC__ /* musl has no makecontext */
/* Two fibers at the same place, the second of which has the smaller stack. */
static ucontext_t outside, within;
static uintptr_t wrong;

static void on_fiber(void)
{
    call_with_fp(walk, wrong);
}

static void run_fiber(char *stack, size_t bytes)
{
    getcontext(&within);
    within.uc_stack.ss_sp = stack;
    within.uc_stack.ss_size = bytes;
    within.uc_link = &outside;
    makecontext(&within, on_fiber, 0);
    swapcontext(&outside, &within);
}

TEST(stacks_may_shrink_between_two_walks)
{
    char *stack = map(4 * PAGE);

    /* Frames at the top of the large stack; then from one far below, so that all that lies in between is known. */
    uintptr_t *top = (uintptr_t *)(stack + 4 * PAGE - 64);
    top[0] = 0;
    top[1] = (uintptr_t)on_fiber + 1;
    wrong = (uintptr_t)top;
    run_fiber(stack, PAGE);
    CHECK(frames > 2, "%zu frames", frames);
    munmap(stack + PAGE, 3 * PAGE);
    run_fiber(stack, PAGE);
    CHECK_EQUAL(frames, 2);
    CHECK(!complete, "a stack that ends in the middle is complete");
}
#endif

/* ---- tables ---- */

static uint64_t random_below(uint64_t limit)
{
    static uint64_t seed = 1;

    return check_random(&seed) % limit;
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
    while (last < module.end && last - module.table < 1 << 20 && culet_readable_page(&readable, last) &&
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
#ifdef __GLIBC__
    const unsigned least = 1000;
#else
    const unsigned least = 20; /* musl's tables have few functions */
#endif
    CHECK(found > least, "only %u functions were found", found);
}

#if defined(__x86_64__)
enum { FP = 6, SP = 7, RETURN = 16 };
#elif defined(__aarch64__)
enum { FP = 29, SP = 31, RETURN = 30 };
#endif

/* A module of one function: its table, a common description and its own. */
struct tiny {
    uint8_t head[4];
    int32_t frame;
    uint32_t count;
    int32_t function, description;
    uint32_t common_length, common_id;
    uint8_t common[16]; /* version, "zR", alignments, return register, encoding, instructions */
    uint32_t length;
    int32_t distance;
    int32_t start;
    uint32_t bytes;
    uint8_t data, code[51];
};

static struct tiny tiny_module(void)
{
    struct tiny t = {
        .head = {1, 0x1b, 0x03, 0x3b},
        .count = 1,
        .function = 4096,
        .common_length = 20,
        .common = {1, 'z', 'R', 0, 1, 0x78, RETURN, 1, 0x1b, 0x0c, SP, 8, 0x80 | RETURN, 1},
        .bytes = 4096,
    };
    t.description = (int32_t)offsetof(struct tiny, length);
    t.length = (uint32_t)(sizeof t - offsetof(struct tiny, distance));
    t.distance = (int32_t)(offsetof(struct tiny, distance) - offsetof(struct tiny, common_length));
    t.start = 4096 - (int32_t)offsetof(struct tiny, start);
    return t;
}

TEST(instructions_may_be_anything)
{
    size_t room = PAGE;
    char *memory = map(3 * PAGE), *at = memory + room - sizeof(struct tiny);
    struct culet_readable readable = {{0}};
    struct culet_module module = {(uintptr_t)at, (uintptr_t)memory + 3 * PAGE, (uintptr_t)at};
    struct culet_function function;
    struct culet_rule rule;
    struct tiny tiny = tiny_module();
    unsigned kinds[8] = {0};

    memcpy(at, &tiny, sizeof tiny);
    CHECK(culet_cfi_find(&module, (uintptr_t)at + 4100, &rule, &function, &readable), "the function is not found");
    CHECK(rule.kind == CULET_RULE_FRAME && rule.cfa_offset == 1 && rule.return_offset == -1, "the rule is another");
    for (unsigned round = 0; round < 100000; round++) {
        static const uint8_t opcodes[] = {0x01, 0x02, 0x05, 0x06, 0x07, 0x08,      0x09,          0x0a,     0x0b,
                                          0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,      0x12,          0x13,     0x14,
                                          0x15, 0x16, 0x2d, 0x2e, 0x41, 0x80 | FP, 0x80 | RETURN, 0xc0 | FP};
        static const uint8_t registers[] = {FP, SP, RETURN};
        tiny = tiny_module();
        for (size_t i = 0; i < sizeof tiny.code; i++) {
            const uint8_t choices[] = {opcodes[random_below(sizeof opcodes)], opcodes[random_below(sizeof opcodes)],
                                       registers[random_below(sizeof registers)], (uint8_t)random_below(16),
                                       (uint8_t)random_below(256)};
            tiny.code[i] = choices[random_below(sizeof choices)];
        }
        if (random_below(2))
            for (unsigned i = 0; i < 8; i++)
                tiny.common[random_below(16)] = (uint8_t)random_below(256);
        memcpy(at, &tiny, sizeof tiny);
        if (culet_cfi_find(&module, (uintptr_t)at + 4096 + random_below(4096), &rule, &function, &readable))
            kinds[rule.kind]++;
    }
    CHECK(kinds[CULET_RULE_UNKNOWN] && kinds[CULET_RULE_SPECIAL] && kinds[CULET_RULE_OUTER],
          "rules of a kind are missing");
}

/* Segments of a library may lie far apart, with memory in between that cannot be read. */
TEST(modules_may_have_gaps)
{
    char *memory = map(3 * PAGE), *at = memory + PAGE - sizeof(struct tiny);
    struct culet_module module = {(uintptr_t)memory, (uintptr_t)memory + 3 * PAGE, (uintptr_t)at};
    struct culet_function function;
    struct culet_rule rule;

    CHECK(mprotect(memory + PAGE, PAGE, PROT_NONE) == 0, "no gap");
    for (size_t field = 0; field < 4; field++) {
        struct culet_readable readable = {{0}};
        struct tiny tiny = tiny_module();
        if (field == 0)
            tiny.description = (int32_t)sizeof tiny + 64;
        else if (field == 1)
            tiny.distance = -(int32_t)PAGE;
        else if (field == 2)
            tiny.count = (uint32_t)PAGE / 8 + 100;
        else
            module.table = (uintptr_t)memory + PAGE + 100;
        memcpy(at, &tiny, sizeof tiny);
        CHECK(!culet_cfi_find(&module, (uintptr_t)at + 5000, &rule, &function, &readable), "field %zu: a function",
              field);
        culet_cfi_identity(&module, &readable);
    }
}

CHECK_MAIN
