/* retain/sampled.h - what keeps the objects that the memory profile has sampled, and those that have a sampled block of
 * malloc: it leads from the code that allocated to the holder. */
#pragma once

#include "retain/analysis.h"
#include "sampler/core/profile.h"

struct culet_live;

struct culet_sampled {
    const struct culet_profile_samples *samples;
    struct culet_numbers ids; /* by sample: id of its object, CULET_NO_ID: it is not known */
};

/* Sets the ids: once over all slots. A block belongs to the first object that has its address. */
void culet_sampled_find(struct culet_sampled *sampled, struct culet_live *live);

/* Writes `,"samples":{...}`: the sites with the most bytes, and the holders and sets that keep most of each. */
void culet_sampled_write(struct culet_analysis *analysis, const struct culet_sampled *sampled,
                         const struct culet_shown *shown, struct culet_buffer *out);
