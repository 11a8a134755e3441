/* misuse.h - the diagnostic of a misuse: one line on stderr that names the mistake, then SIGABRT. */
#pragma once

#include "types.h"

/* `function` was given a pointer that is not a live block; the line says what it is. */
_Noreturn void culet_misuse(const char *function, uintptr_t p);

/* A sized free of a live block whose size does not fit the block. What is to be freed is known nevertheless, and Ruby
 * 4.1 passes on sizes that C extensions give: so the process goes on, after one line for all sized frees of its life.
 * A hardened process ends. */
void culet_misuse_size(const char *function, uintptr_t p, size_t given, size_t usable);

/* A sized free of the live block at `p` with an alignment that the block does not have, or that is none. It is known
 * what is to be freed, so the process goes on, after one line for all sized frees of its life; a hardened one ends. */
void culet_misuse_alignment(const char *function, uintptr_t p, size_t alignment);

/* Errors of a block of a slab in a hardened process. */
enum culet_problem {
    CULET_FINE,
    CULET_NOT_THE_START, /* the pointer is not the start of a block */
    CULET_QUARANTINED,   /* the block is freed, and in quarantine */
    CULET_OVERFLOW,      /* the bytes behind the block were overwritten */
    CULET_UNDERFLOW,     /* the bytes before it were overwritten */
    CULET_DANGLING       /* it was written to after its free */
};

/* `function` was given such a block, or has found it. `size`: bytes of the class. */
_Noreturn void culet_misuse_problem(const char *function, enum culet_problem problem, uintptr_t block, size_t size);
