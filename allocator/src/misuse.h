/* misuse.h - the last words: one line on stderr that names the mistake, then SIGABRT. */
#ifndef CULET_MISUSE_H
#define CULET_MISUSE_H

#include "types.h"

/* `function` was given a pointer that is not a live block. Finds out what it is instead. */
_Noreturn void culet_misuse(const char *function, uintptr_t p);

/* A sized free whose size does not fit the block. */
_Noreturn void culet_misuse_size(const char *function, uintptr_t p, size_t given, size_t usable);

#endif
