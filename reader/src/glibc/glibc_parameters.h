/* glibc_parameters.h - mp_ (struct malloc_par): the count and bytes of mapped chunks, and where brk's heap begins. */
#pragma once

#include "glibc/glibc_heap.h"

/* Distance from n_mmaps to sbrk_base: from 2.35 on one more int lies before the counts, and padding after them. */
#define CULET_GLIBC_COUNTS_NEW 36u
#define CULET_GLIBC_COUNTS_OLD 32u

/* Finds mp_ in libc's data, of which `data` is a copy: `bytes` from address `base` on. */
void culet_glibc_parameters_find(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                                 uint64_t base, size_t bytes);

/* Updates n_mmaps and mmapped_bytes. Returns mp_.sbrk_base, or 0. */
uint64_t culet_glibc_parameters_read(struct culet_reading *reading, struct culet_glibc *heap);
