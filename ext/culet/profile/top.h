/* profile/top.h - the largest sites of the memory profile as a short stream (sampler/core/profile.h), in any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"

/* Whether the profile samples, or follows what it has sampled. */
bool culet_profile_top_exists(void);

/* Writes the largest sites, as many as fit into `most` bytes: only the view live, the frames and modules of their
 * stacks, and before the end a line "B malloc_bytes object_bytes" with the sums of all sites. Keeps the buffer's memory.
 * Not in two threads at once. Returns the estimated live bytes; negative: there is no profile, or no memory. */
double culet_profile_top(struct culet_buffer *buffer, size_t most);
