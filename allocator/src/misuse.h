/* misuse.h - the diagnostic of a misuse: one line on stderr that names the mistake, then SIGABRT. */
#ifndef CULET_MISUSE_H
#define CULET_MISUSE_H

#include "types.h"

/* `function` was given a pointer that is not a live block; the line says what it is. */
_Noreturn void culet_misuse(const char *function, uintptr_t p);

/* A sized free whose size does not fit the block. */
_Noreturn void culet_misuse_size(const char *function, uintptr_t p, size_t given, size_t usable);

/* A sized free whose alignment the block does not have, or that is no alignment. */
_Noreturn void culet_misuse_alignment(const char *function, uintptr_t p, size_t alignment);

#endif
