#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "unwind.h"

#include "cfi.h"
#include "modules.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

/* ---- one walk ---- */

struct frame {
    uintptr_t pc, sp, fp, link; /* link: the return address in a register, of an innermost function only */
    bool exact;                 /* pc is the address of an instruction, not one behind a call */
};

/* A stack leads through few modules, so each is looked up once. */
#define MODULES 4

struct known {
    uintptr_t start, bytes;
    uint64_t identity;
    struct culet_module module;
};

struct walk {
    struct frame frame;
    uintptr_t checked, checked_bytes; /* part of the stack that can be read, for loads of a word that begin in there */
    struct known *module;             /* the last one */
    struct known known[MODULES];
    unsigned count;
    struct culet_readable readable;
};

static __attribute__((noinline)) struct known *change_module(struct walk *w, uintptr_t address)
{
    struct culet_module module;

    for (unsigned i = 0; i < MODULES; i++)
        if (address - w->known[i].start < w->known[i].bytes)
            return w->module = &w->known[i];
    if (!culet_module_find(address, &module, &w->readable))
        return NULL;
    struct known *known = &w->known[w->count++ % MODULES];
    *known = (struct known){module.start, module.end - module.start, culet_cfi_identity(&module, &w->readable), module};
    return w->module = known;
}

/* The module that contains the address, or NULL. */
static inline struct known *module_of(struct walk *w, uintptr_t address)
{
    struct known *known = w->module;

    return __builtin_expect(address - known->start < known->bytes, 1) ? known : change_module(w, address);
}

/* ---- rules of addresses seen before ---- */

#define CACHED 4096 /* a power of two */

/* A thread may read an entry while another one writes it: so the key is the address combined with the rule, and an entry
 * of two halves that do not belong together has no address that anybody looks for. The module's identity is part of the
 * key too: another library may be loaded where one was unloaded. */
static struct {
    _Atomic uint64_t key, rule;
} cache[CACHED];

static inline uint64_t mixed(uint64_t rule)
{
    return rule * UINT64_C(0x9e3779b97f4a7c15);
}

static __attribute__((noinline)) struct culet_rule make_rule(struct walk *w, const struct known *known,
                                                             uintptr_t address, size_t at)
{
    struct culet_rule rule = {.kind = CULET_RULE_NONE};
    struct culet_function function;
    uint64_t word;

    if (!culet_cfi_find(&known->module, address, &rule, &function, &w->readable))
        rule = (struct culet_rule){.kind = CULET_RULE_NONE};
    memcpy(&word, &rule, sizeof word);
    atomic_store_explicit(&cache[at].rule, word, memory_order_relaxed);
    atomic_store_explicit(&cache[at].key, (uint64_t)address ^ known->identity ^ mixed(word), memory_order_relaxed);
    return rule;
}

static inline struct culet_rule find_rule(struct walk *w, uintptr_t address)
{
    size_t at = (size_t)((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 52) & (CACHED - 1);
    const struct known *known = module_of(w, address);
    struct culet_rule rule = {.kind = CULET_RULE_NONE};

    if (__builtin_expect(!known, 0))
        return rule;
    uint64_t word = atomic_load_explicit(&cache[at].rule, memory_order_relaxed);
    uint64_t key = (uint64_t)address ^ known->identity ^ mixed(word);
    if (__builtin_expect(atomic_load_explicit(&cache[at].key, memory_order_relaxed) != key, 0))
        return make_rule(w, known, address, at);
    memcpy(&rule, &word, sizeof rule);
    return rule;
}

bool culet_unwind_function(uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
    struct culet_readable readable = {{0}};
    struct culet_function function;
    struct culet_module module;
    struct culet_rule rule;

    if (!culet_module_find(pc, &module, &readable) || !culet_cfi_find(&module, pc, &rule, &function, &readable))
        return false;
    *start = function.start;
    *end = function.end;
    return true;
}

/* ---- frames ---- */

/* The farthest that a frame reaches. Beyond lies another stack. */
#define FRAME_LIMIT ((uintptr_t)16 << 20)

static __attribute__((noinline)) bool check(struct walk *w, uintptr_t address)
{
    uintptr_t page = address & -CULET_READABLE_PAGE;

    if (address & 7 || !culet_readable_page(&w->readable, address))
        return false;
    if (page != w->checked + w->checked_bytes + 7) {
        w->checked = page;
        w->checked_bytes = 0 - (uintptr_t)7;
    }
    w->checked_bytes += CULET_READABLE_PAGE;
    return true;
}

/* A wrong rule may lead to what AddressSanitizer has put between variables. */
#ifdef __SANITIZE_ADDRESS__
#define UNCHECKED __attribute__((no_sanitize_address, noinline))
#else
#define UNCHECKED inline
#endif

static UNCHECKED bool load(struct walk *w, uintptr_t address, uintptr_t *value)
{
    typedef uintptr_t word __attribute__((may_alias, aligned(1)));

    if (__builtin_expect(address - w->checked >= w->checked_bytes, 0) && !check(w, address))
        return false;
    *value = *(const word *)address;
    return true;
}

/* Without the bits of a signed return address. */
static inline uintptr_t stripped(uintptr_t address)
{
#ifdef __aarch64__
    return address & (((uintptr_t)1 << 48) - 1);
#else
    return address;
#endif
}

static inline uintptr_t words_from(uintptr_t address, int64_t words)
{
    return address + (uintptr_t)words * 8;
}

/* The frame address must rise. */
static inline bool is_above(uintptr_t cfa, uintptr_t sp)
{
    return cfa - sp - 1 < FRAME_LIMIT && !(cfa & 7);
}

static inline bool step_by_rule(struct walk *w, struct culet_rule rule)
{
    struct frame *f = &w->frame;
    uintptr_t cfa = words_from(rule.from_fp ? f->fp : f->sp, rule.cfa_offset);
    uintptr_t saved = words_from(cfa, rule.return_offset), pc;

    if (!is_above(cfa, f->sp) || !load(w, saved, &pc) ||
        (rule.fp_saved && !load(w, words_from(saved, rule.fp_offset), &f->fp)))
        return false;
    f->pc = stripped(pc);
    f->sp = cfa;
    f->exact = false;
    return true;
}

static __attribute__((noinline)) bool step_by_special_rule(struct walk *w, struct culet_rule rule)
{
    struct frame *f = &w->frame;
    uintptr_t cfa = words_from(rule.from_fp ? f->fp : f->sp, rule.cfa_offset), pc = f->link, fp = f->fp;

    if (rule.stored) {
        if (!load(w, cfa, &cfa))
            return false;
        cfa = words_from(cfa, rule.added);
    }
    /* On AArch64 the innermost function may have no frame, and its caller's address in a register. */
    if (!is_above(cfa, f->sp) && !(cfa == f->sp && !rule.return_offset))
        return false;
    uintptr_t saved = words_from(cfa, rule.return_offset);
    if (rule.return_offset ? !load(w, saved, &pc) : !f->exact)
        return false;
    if (!rule.fp_saved)
        fp = rule.fp_offset ? 0 : fp;
    else if (!load(w, words_from(rule.fp_at_fp ? fp : saved, rule.fp_offset), &fp))
        return false;
    *f = (struct frame){.pc = stripped(pc), .sp = cfa, .fp = fp};
    return true;
}

/* The frame pointer's chain, through code without call frame information: a JIT compiler's. Such code is called by a known
 * module, or by other code nearby; any other address is no return address. */
static __attribute__((noinline)) bool step_by_fp(struct walk *w)
{
    struct frame *f = &w->frame;
    uintptr_t pc, fp;

    if (f->fp - f->sp >= FRAME_LIMIT || f->fp & 7 || !load(w, f->fp + 8, &pc) || !load(w, f->fp, &fp))
        return false;
    pc = stripped(pc);
    if (pc && pc - f->pc + ((uintptr_t)64 << 20) >= (uintptr_t)128 << 20 && !module_of(w, pc - 1))
        return false;
    *f = (struct frame){.pc = pc, .sp = f->fp + 16, .fp = fp};
    return true;
}

/* The instructions behind a signal handler, where they have no call frame information. */
static bool is_return_from_signal(struct walk *w)
{
#if defined(__x86_64__)
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}; /* mov $15, %rax; syscall */
#elif defined(__aarch64__)
    static const uint32_t code[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */
#else
    static const uint8_t code[] = {0};
#endif
    uint8_t found[sizeof code];

    return culet_readable_copy(&w->readable, found, w->frame.pc, sizeof found) && !memcmp(found, code, sizeof found);
}

/* The frame that the kernel made below a signal handler. */
static __attribute__((noinline)) bool step_by_signal(struct walk *w)
{
    struct frame *f = &w->frame;
#if defined(__x86_64__)
    const ucontext_t *context = (const ucontext_t *)f->sp;
    greg_t registers[NGREG];
    if (!culet_readable_copy(&w->readable, registers, (uintptr_t)context->uc_mcontext.gregs, sizeof registers))
        return false;
    *f = (struct frame){(uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP], (uintptr_t)registers[REG_RBP], 0,
                        true};
    return true;
#elif defined(__aarch64__)
    const ucontext_t *context = (const ucontext_t *)(f->sp + sizeof(siginfo_t));
    uint64_t registers[33]; /* x0 to x30, sp, pc */
    if (!culet_readable_copy(&w->readable, registers, (uintptr_t)context->uc_mcontext.regs, sizeof registers))
        return false;
    *f = (struct frame){registers[32], registers[31], registers[29], stripped(registers[30]), true};
    return true;
#else
    (void)f;
    return false;
#endif
}

/* To the caller. False: the stack cannot be followed; or, with `outer`, it ends here. */
static inline bool step(struct walk *w, bool *outer)
{
    struct culet_rule rule = find_rule(w, w->frame.exact ? w->frame.pc : w->frame.pc - 1);

    if (__builtin_expect(rule.kind == CULET_RULE_FRAME, 1))
        return step_by_rule(w, rule);
    if (rule.kind == CULET_RULE_SPECIAL)
        return step_by_special_rule(w, rule);
    *outer = rule.kind == CULET_RULE_OUTER;
    if (rule.kind == CULET_RULE_SIGNAL || (rule.kind == CULET_RULE_NONE && is_return_from_signal(w)))
        return step_by_signal(w);
    return rule.kind == CULET_RULE_NONE && step_by_fp(w);
}

/* The calling function itself. */
static inline __attribute__((always_inline)) struct frame here(void)
{
    struct frame f = {.exact = true};

    /* The frame pointer first: the compiler may choose its register for another result. */
#if defined(__x86_64__)
    __asm__ volatile("mov %%rbp, %0\n\tmov %%rsp, %1\n\tlea 0(%%rip), %2" : "=r"(f.fp), "=r"(f.sp), "=r"(f.pc));
#elif defined(__aarch64__)
    __asm__ volatile("mov %0, x29\n\tmov %1, x30\n\tmov %2, sp\n\tadr %3, ."
                     : "=&r"(f.fp), "=r"(f.link), "=r"(f.sp), "=r"(f.pc));
#endif
    return f;
}

__attribute__((noinline)) size_t culet_unwind(uintptr_t *pcs, size_t max, bool *complete)
{
    struct walk w = {.frame = here(), .module = w.known};
    bool outer = false;
    size_t count = 0;

    while (count < max && step(&w, &outer) && w.frame.pc)
        pcs[count++] = w.frame.pc;
    /* A caller of address 0 is what the first function of a stack has. */
    *complete = outer || (count < max && !w.frame.pc);
    return count;
}
