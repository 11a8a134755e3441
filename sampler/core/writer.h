/* writer.h - the lines P, A, R, G, U, M, K, S, W, D and I of the stream (profile.h). */
#pragma once

#include "tables.h"

/* Of a copy, whose large samples get the size that is resident. False: no memory, or `output` returned false. */
bool culet_profile_write(struct culet_tables *tables, culet_profile_output *output, void *data, uint64_t *lines);

/* The lines M of the modules that `wanted` accepts, which the loader's lock is held for. `lines` is increased. */
typedef bool culet_profile_wanted(const void *data, uintptr_t start, uintptr_t end);
bool culet_profile_write_modules(culet_profile_wanted *wanted, const void *wanted_data, culet_profile_output *output,
                                 void *data, uint64_t *lines);
