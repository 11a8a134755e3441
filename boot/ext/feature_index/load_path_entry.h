/* feature_index/load_path_entry.h - the load path as Ruby has it. */
#pragma once

#include <stddef.h>

/* A folder of the load path as written there. */
struct culet_load_path_entry {
    const char *path; /* absolute; NULL: the lookup stops at this entry */
    size_t length;
};
