/* glibc_find.h - whether the process has a heap of glibc's, and where. */
#pragma once

#include "glibc/glibc_heap.h"

/* Paused: finds main_arena, mp_ and libc's code, in libc's data or that of a static program. Returns whether there is a
 * heap. */
bool culet_glibc_find(struct culet_reading *reading, struct culet_glibc *heap);
