/* ranges.h - ranges of addresses that do not overlap, in order. */
#ifndef CULET_RANGES_H
#define CULET_RANGES_H

#include "place.h"

struct culet_ranges {
    struct culet_range *all;
    size_t count, room;
};

/* Adds from..to; false, and nothing is added, when it is empty or overlaps one that is there. Quick where ranges come in
 * order, or nearly so. */
bool culet_ranges_add(struct culet_ranges *ranges, uint64_t from, uint64_t to);

#endif
