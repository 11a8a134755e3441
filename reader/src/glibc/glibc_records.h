/* glibc_records.h - the records about glibc's heap. */
#ifndef CULET_GLIBC_RECORDS_H
#define CULET_GLIBC_RECORDS_H

#include "glibc/glibc_heap.h"

void culet_glibc_write(const struct culet_reading *reading, const struct culet_glibc *heap);

#endif
