/* libc.h - what glibc's <malloc.h> declares and musl's does not. culet exports these functions on both; they are weak,
 * because a program on musl's own allocator has none of them. */
#pragma once

#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#ifndef __GLIBC__
#define WEAK __attribute__((weak))
extern int malloc_trim(size_t pad) WEAK;
extern int mallopt(int parameter, int value) WEAK;
extern int malloc_info(int options, FILE *stream) WEAK;
extern void malloc_stats(void) WEAK;
extern void *pvalloc(size_t bytes) WEAK;
#undef WEAK

enum {
    M_MXFAST = 1,
    M_ARENA_MAX = -8,
    M_ARENA_TEST = -7,
    M_MMAP_MAX = -4,
    M_MMAP_THRESHOLD = -3,
    M_TOP_PAD = -2,
    M_TRIM_THRESHOLD = -1,
};
#endif
