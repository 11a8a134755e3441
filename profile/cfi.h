/* cfi.h - call frame information: how the caller's registers follow from those at an address.
 *
 * Source: DWARF 5, section 6.4, and "Exception Frames" of the Linux Standard Base (.eh_frame, .eh_frame_hdr). Only what
 * compilers write for functions is understood: a frame address relative to the stack or the frame pointer, registers saved
 * relative to the frame address. All else is CULET_RULE_UNKNOWN. The tables are not trusted: no read leaves the module. */
#ifndef CULET_PROFILE_CFI_H
#define CULET_PROFILE_CFI_H

#include "modules.h"

enum culet_rule_kind {
    CULET_RULE_UNKNOWN,
    CULET_RULE_FRAME,  /* a function's frame */
    CULET_RULE_OUTER,  /* the outermost one: there is no caller */
    CULET_RULE_SIGNAL, /* the kernel's frame of a signal handler */
};

#define CULET_NOT_SAVED INT16_MIN

/* Eight bytes, so that a cache can exchange rules by one word. */
struct culet_rule {
    uint8_t kind;
    bool from_fp; /* the frame address is relative to the frame pointer, not to the stack pointer */
    int16_t
        return_offset; /* of the saved return address, from the frame address in words of 8 bytes; or CULET_NOT_SAVED */
    int16_t fp_offset; /* of the saved frame pointer, likewise */
    int16_t cfa_offset; /* from the register to the frame address, in words of 8 bytes */
};
_Static_assert(sizeof(struct culet_rule) == 8, "a rule is one word");

struct culet_function {
    uintptr_t start, end;
};

/* The rule at an address of a module; `function` receives the bounds of the function. False: the tables have no function
 * there, or cannot be read. */
bool culet_cfi_find(const struct culet_module *module, uintptr_t address, struct culet_rule *rule,
                    struct culet_function *function);

#endif
