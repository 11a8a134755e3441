/* common/memory_file.h - files in memory, to which `culet trace` records. */
#ifndef CULET_MEMORY_FILE_H
#define CULET_MEMORY_FILE_H

#include <ruby.h>

void culet_init_memory_file(VALUE culet);

#endif
