/* cfi.h - call frame information: how the caller's registers follow from those at an address.
 *
 * Source: DWARF 5, section 6.4, and "Exception Frames" of the Linux Standard Base (.eh_frame, .eh_frame_hdr). What
 * compilers write for functions is understood: a frame address relative to the stack or the frame pointer, or stored in
 * the frame (realigned stacks), registers saved relative to the frame address, and the expressions of the procedure
 * linkage table. All else is CULET_RULE_UNKNOWN. The tables are not trusted: no read leaves the module. */
#pragma once

#include "modules.h"

enum culet_rule_kind {
    CULET_RULE_NONE,    /* the tables have no function there */
    CULET_RULE_UNKNOWN, /* one that cannot be followed */
    CULET_RULE_FRAME,   /* a function's frame: the return address is saved, the frame pointer is or has not changed */
    CULET_RULE_SPECIAL, /* any other frame of a function */
    CULET_RULE_OUTER,   /* the outermost one: there is no caller */
    CULET_RULE_SIGNAL,  /* the kernel's frame of a signal handler */
};

/* Eight bytes, so that a cache can exchange rules by one word. Offsets are in words of 8 bytes. */
struct culet_rule {
    uint64_t kind : 3;
    uint64_t from_fp : 1;       /* the frame address is relative to the frame pointer, not to the stack pointer */
    uint64_t stored : 1;        /* the frame address less `added` is stored there */
    uint64_t added : 1;         /* words */
    uint64_t fp_saved : 1;      /* else the frame pointer is in its register, or lost if fp_offset is not 0 */
    uint64_t fp_at_fp : 1;      /* it is saved relative to itself */
    int64_t cfa_offset : 21;    /* from the register to the frame address */
    int64_t return_offset : 21; /* of the saved return address, from the frame address; 0: it is in its register */
    int64_t fp_offset : 14;     /* of the saved frame pointer, from where the return address is saved */
};
_Static_assert(sizeof(struct culet_rule) == 8, "a rule is one word");

struct culet_function {
    uintptr_t start, end;
};

/* The rule at an address of a module; `function` receives the bounds of the function. False: the tables have no function
 * there, or cannot be read. */
bool culet_cfi_find(const struct culet_module *module, uintptr_t address, struct culet_rule *rule,
                    struct culet_function *function, struct culet_readable *readable);

/* A number that differs between modules, also between those that are loaded at the same address one after the other. */
uint64_t culet_cfi_identity(const struct culet_module *module, struct culet_readable *readable);
