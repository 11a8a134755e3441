/* common/memory_file.h - files in memory, to which `culet trace` records. */
#pragma once

#include <ruby.h>

void culet_init_memory_file(VALUE culet);
