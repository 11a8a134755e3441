/* writer.h - the lines P, A, R, M, K and S of the stream (profile.h). */
#ifndef CULET_PROFILE_WRITER_H
#define CULET_PROFILE_WRITER_H

#include "tables.h"

/* False: no memory, or `output` returned false. */
bool culet_profile_write(const struct culet_tables *tables, culet_profile_output *output, void *data, uint64_t *lines);

#endif
