/* unwind.h - the native stack of the calling thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stores at most `max` addresses, innermost first, from the caller on. `complete`: whether the outermost function was
 * reached. Neither locks nor allocates. */
size_t culet_unwind(uintptr_t *pcs, size_t max, bool *complete);

/* The function that contains an address; false: not known. */
bool culet_unwind_function(uintptr_t pc, uintptr_t *start, uintptr_t *end);
