/* glibc_records.h - the records about glibc's heap. */
#pragma once

#include "glibc/glibc_heap.h"

void culet_glibc_write(const struct culet_reading *reading, const struct culet_glibc *heap);
