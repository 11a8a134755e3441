/* profile/merge.h - one stack of native frames and Ruby's frames. Knows no Ruby.
 *
 * Each activation of the interpreter's main function executes a run of Ruby's frames. A run begins where C called Ruby:
 *
 *     native              Ruby                 merged
 *     malloc              String#*  (C)        malloc, rb_str_times
 *     rb_str_times        block                String#*
 *     vm_exec_core                             block
 *     vm_exec      -+
 *     rb_yield      |
 *     parse (x.so)  |     X.parse   (C)        parse
 *     vm_exec_core  |     load                 X.parse
 *     vm_exec      -+     main                 load
 *     ruby_run_node                            main */
#pragma once

#include "sampler/core/profile.h"

#define CULET_INTERPRETER_FUNCTIONS 16

struct culet_range {
    uintptr_t start, past;
};

/* All zeros: not known; then the native frames come first. */
struct culet_interpreter {
    struct culet_range image;    /* the code of its library or program */
    struct culet_range run;      /* the function that each run has exactly once */
    struct culet_range deferred; /* the function that runs deferred work, whatever code it interrupts */
    _Atomic bool has_deferred;   /* it is known; set last */
    struct culet_range functions[CULET_INTERPRETER_FUNCTIONS];
    size_t count; /* of functions, the run's among them */
};

/* Whether a call that returns to an address is in a range. It may be the last instruction. */
static inline bool culet_range_has(const struct culet_range *range, uintptr_t pc)
{
    return pc - 1 - range->start < range->past - range->start;
}

/* The native frames up to the interpreter, and a mark in place of Ruby's. Returns the number of words. */
size_t culet_merge_mark(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count,
                        enum culet_mark mark, uint64_t *words, size_t max);

/* The native frames, and `ruby_count` words of Ruby's frames, innermost first; is_c: which of these are C functions.
 * Of deferred work a mark follows in place of Ruby's frames, which did not ask for it. Returns the number of words. */
size_t culet_merge(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count,
                   const uint64_t *ruby, const bool *is_c, size_t ruby_count, uint64_t *words, size_t max);
