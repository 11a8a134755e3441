/* maps.h - one line of /proc/self/maps. Read by raw system calls: open and read are cancellation points, and malloc
 * must not be one. */
#pragma once

#include "types.h"

struct culet_mapping {
    uintptr_t start, end;
    char name[384]; /* of the file, or "[stack]" and the like; empty for anonymous memory; cut off if longer */
};

/* The mapping that contains an address. False if there is none, or /proc is not there. Leaves errno alone. */
bool culet_maps_find(uintptr_t address, struct culet_mapping *found);
