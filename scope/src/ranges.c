#include "ranges.h"

#include <string.h>

/* The first that ends behind the address. */
static size_t find(const struct culet_ranges *ranges, uint64_t address)
{
    size_t from = 0, to = ranges->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (ranges->all[middle].end <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool culet_ranges_add(struct culet_ranges *ranges, uint64_t from, uint64_t to)
{
    size_t at = find(ranges, from);

    if (from >= to || (at < ranges->count && ranges->all[at].start < to))
        return false;
    ranges->all = culet_grow(ranges->all, &ranges->room, ranges->count + 1, sizeof *ranges->all);
    memmove(ranges->all + at + 1, ranges->all + at, (ranges->count - at) * sizeof *ranges->all);
    ranges->all[at] = (struct culet_range){from, to};
    ranges->count++;
    return true;
}
