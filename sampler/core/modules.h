/* modules.h - the loaded program and libraries: which one contains an address, and where its unwind table is. */
#pragma once

#include "readable.h"

struct culet_module {
    uintptr_t start, end; /* the whole mapping, perhaps with gaps; its tables lie in there */
    uintptr_t table;      /* .eh_frame_hdr, or 0 */
};

/* The module that contains an address; false: none, or none that is known. Neither locks nor allocates. */
bool culet_module_find(uintptr_t address, struct culet_module *module, struct culet_readable *readable);

/* The linker's number of the module's contents. Stores its address; returns its length; 0: it has none. */
size_t culet_module_build_id(const struct culet_module *module, uintptr_t *id, struct culet_readable *readable);

/* Reads the loader's list again. Takes the loader's lock: not inside malloc, and one thread at a time. Where the loader
 * answers by itself (glibc 2.35 and later) there is nothing to do. */
void culet_modules_refresh(void);
