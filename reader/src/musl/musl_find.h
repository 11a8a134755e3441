#pragma once

#include "musl/musl_heap.h"

/* Searches the data of `file`, the C library or a static program, for the heap's context: a number that is also the
 * first word of the first and of the last area. False if there is none: nothing was allocated, or the library has
 * another malloc. */
bool culet_musl_find(struct culet_reading *reading, struct culet_musl *heap, const char *file);
