/* profile/interpreter.h - which functions of this process are Ruby's interpreter. They have no symbols, so they are
 * found by calling Ruby from C in several ways: what lies between in every case is the interpreter. */
#pragma once

#include "profile/merge.h"

/* The result of culet_interpreter_find; all zeros without one. */
const struct culet_interpreter *culet_interpreter(void);

/* Finds the interpreter's functions. Once, with the GVL, before the profile asks for Ruby's frames. Runs Ruby code. May
 * raise. */
void culet_interpreter_find(void);

/* Finds the function that runs deferred work, by the address to which a postponed job returns. */
void culet_interpreter_find_deferred(uintptr_t return_address);
