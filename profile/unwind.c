#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "unwind.h"

#include "cfi.h"
#include "modules.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- rules of addresses seen before ---- */

#define CACHED 4096 /* a power of two */

/* A thread may read an entry while another one writes it: so the key is the address combined with the rule, and an entry
 * of two halves that do not belong together has no address that anybody looks for. */
static struct {
    _Atomic uint64_t key, rule;
} cache[CACHED];

static uint64_t mixed(uint64_t rule)
{
    return rule * UINT64_C(0x9e3779b97f4a7c15);
}

static bool find_rule(uintptr_t address, struct culet_rule *rule)
{
    size_t at = (size_t)((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 52) & (CACHED - 1);
    uint64_t word = atomic_load_explicit(&cache[at].rule, memory_order_relaxed);
    struct culet_function function;
    struct culet_module module;

    if (atomic_load_explicit(&cache[at].key, memory_order_relaxed) == ((uint64_t)address ^ mixed(word))) {
        memcpy(rule, &word, sizeof *rule);
        return true;
    }
    if (!culet_module_find(address, &module) || !culet_cfi_find(&module, address, rule, &function))
        return false;
    memcpy(&word, rule, sizeof word);
    atomic_store_explicit(&cache[at].rule, word, memory_order_relaxed);
    atomic_store_explicit(&cache[at].key, (uint64_t)address ^ mixed(word), memory_order_relaxed);
    return true;
}

void culet_unwind_refresh(void)
{
    culet_modules_refresh();
    /* A library may have taken the place of another one. */
    for (size_t i = 0; i < CACHED; i++)
        atomic_store_explicit(&cache[i].key, 0, memory_order_relaxed);
}

bool culet_unwind_function(uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
    struct culet_function function;
    struct culet_module module;
    struct culet_rule rule;

    if (!culet_module_find(pc, &module) || !culet_cfi_find(&module, pc, &rule, &function))
        return false;
    *start = function.start;
    *end = function.end;
    return true;
}

/* ---- the stack ---- */

/* Part of a stack that can be read, as far as this thread has checked. A wrong rule may point anywhere; a stack may be a
 * thread's, a fiber's or a signal's, and ends at a page that cannot be read. */
struct readable {
    uintptr_t start, end;
};
static _Thread_local struct readable checked __attribute__((tls_model("initial-exec")));

#define CHECKED_PAGE ((uintptr_t)4096)

/* The kernel reads the mask before it refuses the invalid `how`. */
static bool page_is_readable(uintptr_t page)
{
    int error = errno;
    bool readable = syscall(SYS_rt_sigprocmask, -1, page, NULL, 8) == 0 || errno != EFAULT;

    errno = error;
    return readable;
}

static bool is_readable(uintptr_t address, struct readable *r)
{
    if (address & 7 || address < r->start)
        return false;
    /* Far beyond what is checked is no frame of this stack. */
    if (address >= r->end && address - r->end > 256 * CHECKED_PAGE)
        return false;
    for (; address >= r->end; r->end += CHECKED_PAGE)
        if (!page_is_readable(r->end))
            return false;
    return true;
}

static bool load(uintptr_t address, uintptr_t *value, struct readable *r)
{
    if (!is_readable(address, r))
        return false;
    memcpy(value, (const void *)address, sizeof *value);
    return true;
}

/* What is checked on the stack that the thread is on. */
static struct readable begin(uintptr_t sp)
{
    if (sp < checked.start || sp >= checked.end)
        checked = (struct readable){sp & -CHECKED_PAGE, (sp & -CHECKED_PAGE) + CHECKED_PAGE};
    return checked;
}

/* ---- frames ---- */

struct frame {
    uintptr_t pc, sp, fp, link; /* link: the return address in a register, of an innermost function only */
    bool exact;                 /* pc is the address of an instruction, not one behind a call */
};

/* Without the bits of a signed return address. */
static uintptr_t stripped(uintptr_t address)
{
#ifdef __aarch64__
    return address & (((uintptr_t)1 << 48) - 1);
#else
    return address;
#endif
}

static bool step_by_rule(struct frame *f, const struct culet_rule *rule, struct readable *r)
{
    uintptr_t cfa = (rule->from_fp ? f->fp : f->sp) + (uintptr_t)((intptr_t)rule->cfa_offset * 8), pc = f->link,
              fp = f->fp;

    if (cfa <= f->sp && !(cfa == f->sp && f->link))
        return false;
    if (rule->return_offset != CULET_NOT_SAVED && !load(cfa + (uintptr_t)((intptr_t)rule->return_offset * 8), &pc, r))
        return false;
    if (rule->fp_offset != CULET_NOT_SAVED && !load(cfa + (uintptr_t)((intptr_t)rule->fp_offset * 8), &fp, r))
        return false;
    *f = (struct frame){.pc = stripped(pc), .sp = cfa, .fp = fp};
    return true;
}

/* The frame pointer's chain, through code without call frame information. */
static bool step_by_fp(struct frame *f, struct readable *r)
{
    uintptr_t pc, fp;

    if (f->fp < f->sp || !load(f->fp + 8, &pc, r) || !load(f->fp, &fp, r))
        return false;
    *f = (struct frame){.pc = stripped(pc), .sp = f->fp + 16, .fp = fp};
    return true;
}

/* The frame that the kernel made below a signal handler. */
static bool step_by_signal(struct frame *f, struct readable *r)
{
#if defined(__x86_64__)
    const ucontext_t *context = (const ucontext_t *)f->sp;
    if (!is_readable(f->sp, r) || !is_readable((f->sp + sizeof *context) & ~(uintptr_t)7, r))
        return false;
    const greg_t *registers = context->uc_mcontext.gregs;
    *f = (struct frame){(uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP], (uintptr_t)registers[REG_RBP], 0,
                        true};
#elif defined(__aarch64__)
    const ucontext_t *context = (const ucontext_t *)(f->sp + sizeof(siginfo_t));
    if (!is_readable(f->sp, r) || !is_readable((uintptr_t)&context->uc_mcontext.pc, r))
        return false;
    const mcontext_t *registers = &context->uc_mcontext;
    *f = (struct frame){registers->pc, registers->sp, registers->regs[29], registers->regs[30], true};
#else
    (void)f;
    return false;
#endif
    /* The handler may have had a stack of its own. */
    if (f->sp < r->start || f->sp >= r->end)
        *r = (struct readable){f->sp & -CHECKED_PAGE, f->sp & -CHECKED_PAGE};
    return is_readable(f->sp & ~(uintptr_t)7, r);
}

/* To the caller. False: the stack cannot be followed; or, with `outer`, it ends here. */
static bool step(struct frame *f, struct readable *r, bool *outer)
{
    struct culet_rule rule;

    if (!find_rule(f->exact ? f->pc : f->pc - 1, &rule))
        return step_by_fp(f, r);
    switch (rule.kind) {
    case CULET_RULE_FRAME:
        return step_by_rule(f, &rule, r);
    case CULET_RULE_SIGNAL:
        return step_by_signal(f, r);
    case CULET_RULE_OUTER:
        *outer = true;
        return false;
    default:
        return step_by_fp(f, r);
    }
}

/* The calling function itself. */
static inline __attribute__((always_inline)) struct frame here(void)
{
    struct frame f = {.exact = true};

#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(f.pc), "=r"(f.sp), "=r"(f.fp));
#elif defined(__aarch64__)
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
                     : "=r"(f.pc), "=r"(f.sp), "=r"(f.fp), "=r"(f.link));
#endif
    return f;
}

__attribute__((noinline)) size_t culet_unwind(uintptr_t *pcs, size_t max, bool *complete)
{
    struct frame f = here();
    struct readable r = begin(f.sp);
    bool outer = false;
    size_t count = 0;

    while (count < max && step(&f, &r, &outer) && f.pc)
        pcs[count++] = f.pc;
    /* A caller of address 0 is what the first function of a stack has. */
    *complete = outer || (count < max && !f.pc);
    if (r.start == checked.start)
        checked = r;
    return count;
}
