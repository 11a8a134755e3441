/* base/search.h - binary search. */
#pragma once

#include <stddef.h>

/* The first `index` of [from, to) for which the expression `found` is true, as it must be for all behind it; else `to`. */
#define CULET_FIRST_WHERE(index, from, to, found)                                                                      \
    ({                                                                                                                 \
        size_t first_ = (from), past_ = (to);                                                                          \
        while (first_ < past_) {                                                                                       \
            size_t index = first_ + (past_ - first_) / 2;                                                              \
            if (found)                                                                                                 \
                past_ = index;                                                                                         \
            else                                                                                                       \
                first_ = index + 1;                                                                                    \
        }                                                                                                              \
        first_;                                                                                                        \
    })
