/* glibc_trim.h - what malloc_trim(0) returns. */
#pragma once

#include "glibc/glibc_heap.h"

/* Resident bytes that malloc_trim(0) returns of the free bytes from..to of a region, which it merges into one chunk. */
uint64_t culet_glibc_trim_bytes(const struct culet_region *region, uint64_t from, uint64_t to,
                                enum culet_glibc_end end);
