/* profile/live_samples.h - the samples since the base of growth, with the addresses of their objects and blocks, for an
 * analysis of what keeps these (retain/sampled.h). */
#pragma once

#include "sampler/core/profile.h"

/* Lists them, in memory of their own. Those of objects have the object as block; NULL: it has been collected. The addresses
 * are valid until the next collection. Requires the GVL, in the main Ractor.
 *
 * Returns false, and an empty list, without a profile or memory. */
bool culet_live_samples_take(struct culet_profile_samples *samples);

void culet_live_samples_free(struct culet_profile_samples *samples);
