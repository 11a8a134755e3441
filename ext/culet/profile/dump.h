/* profile/dump.h - the stream of a profile (sampler/core/profile.h), with Ruby's frames. */
#pragma once

#include "common/buffer.h"

/* Adds the stream. Releases the GVL while the profile is written; the buffer fails without memory. With the GVL, not
 * during GC. May raise. */
void culet_profile_dump(struct culet_buffer *buffer);

/* Adds the labels, types and frames that the lines of a stream refer to, and counts these lines. In any thread. If there is
 * no memory, the buffer has failed. */
void culet_profile_dump_names(struct culet_buffer *buffer, uint64_t *lines);
