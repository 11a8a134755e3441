/* profile/active_profile.h - the memory profile of this process: the allocator's or the sampler's, which are loaded before
 * Ruby, or the extension's own copy, which has the samples of Ruby's objects alone. */
#pragma once

#include "sampler/core/profile.h"

extern const struct culet_profile_api *culet_active_profile;

/* Finds it. Once, before all else in this folder. */
void culet_active_profile_find(void);
