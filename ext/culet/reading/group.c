#include "reading/group.h"

#define STAT_BYTES 16384 /* of memory.stat, which version 2 keeps extending */

uint64_t culet_group_used(uint64_t charged, uint64_t reclaimable)
{
    if (charged == CULET_UNKNOWN || reclaimable == CULET_UNKNOWN)
        return charged;
    return charged > reclaimable ? charged - reclaimable : 0;
}

/* Version 1 has the sums over the groups below with the prefix total_. */
uint64_t culet_group_reclaimable(const struct culet_group *group)
{
    char text[STAT_BYTES];
    uint64_t inactive, active, mapped;
    bool old;

    if (!culet_kernel_file_read(&group->stat, text, sizeof(text)))
        return CULET_UNKNOWN;
    old = culet_number_of(text, "total_inactive_file") != CULET_UNKNOWN;
    inactive = culet_number_of(text, old ? "total_inactive_file" : "inactive_file");
    if (inactive == CULET_UNKNOWN)
        return CULET_UNKNOWN;
    active = culet_number_or_0(text, old ? "total_active_file" : "active_file");
    mapped = culet_number_or_0(text, old ? "total_mapped_file" : "file_mapped");
    return inactive + (active > mapped ? active - mapped : 0) + culet_number_or_0(text, "slab_reclaimable");
}

uint64_t culet_group_kills(const struct culet_group *group)
{
    char text[1024];

    return culet_kernel_file_read(&group->kills, text, sizeof(text)) ? culet_number_of(text, "oom_kill")
                                                                     : CULET_UNKNOWN;
}
