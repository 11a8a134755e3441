/* retain/brief.h - the largest holders in a struct of a fixed size, and what they have grown by since an earlier one,
 * for the black box. */
#pragma once

#include "retain/analysis.h"

#define CULET_BRIEF_HOLDERS 256
#define CULET_BRIEF_TEXT 1000

struct culet_brief_holder {
    uint64_t key; /* of kind, name and place; holders that have these in common are one */
    uint64_t bytes;
};

/* All zeros: there was none. */
struct culet_brief {
    double at; /* seconds of CLOCK_MONOTONIC */
    uint64_t total_bytes;
    uint32_t count;
    struct culet_brief_holder holders[CULET_BRIEF_HOLDERS]; /* the largest first */
    uint32_t length;
    /* Lines, of which the first is "look SECONDS TOTAL_BYTES GROWTH", the others, which have grown most, "KIND BYTES
     * GROWTH NAME TAB PLACE". SECONDS since the earlier look; without one, -, and GROWTH likewise, and the largest are
     * listed. */
    char text[CULET_BRIEF_TEXT];
};

void culet_brief_make(struct culet_analysis *analysis, const struct culet_brief *earlier, struct culet_brief *brief);
