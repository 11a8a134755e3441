/* cfi.h - call frame information: how the caller's registers follow from those at an address.
 *
 * Source: DWARF 5, section 6.4, and "Exception Frames" of the Linux Standard Base (.eh_frame, .eh_frame_hdr). What
 * compilers write for functions is understood: a frame address relative to the stack or the frame pointer, or stored in
 * the frame (realigned stacks), registers saved relative to the frame address, and the expressions of the procedure
 * linkage table. All else is CULET_RULE_UNKNOWN. The tables are not trusted: no read leaves the module. */
#ifndef CULET_PROFILE_CFI_H
#define CULET_PROFILE_CFI_H

#include "modules.h"

enum culet_rule_kind {
    CULET_RULE_NONE,    /* the tables have no function there */
    CULET_RULE_UNKNOWN, /* one that cannot be followed */
    CULET_RULE_FRAME,   /* a function's frame */
    CULET_RULE_OUTER,   /* the outermost one: there is no caller */
    CULET_RULE_SIGNAL,  /* the kernel's frame of a signal handler */
};

/* Offsets are in words of 8 bytes. */
#define CULET_OFFSET_LIMIT (1 << 17)
#define CULET_NOT_SAVED (-CULET_OFFSET_LIMIT) /* still in its register */
#define CULET_LOST (1 - CULET_OFFSET_LIMIT)   /* saved in a place that cannot be found */
#define CULET_CFA_LIMIT (1 << 19)

/* Eight bytes, so that a cache can exchange rules by one word. */
struct culet_rule {
    uint64_t kind : 3;
    uint64_t from_fp : 1;       /* the frame address is relative to the frame pointer, not to the stack pointer */
    uint64_t stored : 1;        /* that is where the frame address less `added` is stored */
    uint64_t added : 2;         /* words */
    uint64_t fp_at_fp : 1;      /* the frame pointer is saved relative to itself */
    int64_t cfa_offset : 20;    /* from the register to the frame address */
    int64_t return_offset : 18; /* of the saved return address, from the frame address; or CULET_NOT_SAVED */
    int64_t fp_offset : 18;     /* of the saved frame pointer; or CULET_NOT_SAVED, CULET_LOST */
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

#endif
