#include "limit/usage.h"

#include <stdatomic.h>

#include "reading/process.h"

static uint64_t group_bytes(const struct culet_group *group, uint64_t exact_from)
{
    uint64_t charged = culet_kernel_file_number(&group->charged);

    if (charged == CULET_UNKNOWN || charged < exact_from)
        return charged;
    return culet_group_used(charged, culet_group_reclaimable(group));
}

static uint64_t space_bytes(void)
{
    struct culet_sizes sizes;

    (void)culet_read_sizes(CULET_OWN_PROCESS, &sizes);
    return sizes.space;
}

static uint64_t pss_bytes(struct culet_usage *usage, uint64_t exact_from, int fresh)
{
    int near = usage->cluster->total >= exact_from / 8 * 7;
    uint64_t used = culet_cluster_bytes(usage->cluster, fresh  ? CULET_CLUSTER_NOW
                                                        : near ? CULET_CLUSTER_NEAR
                                                               : CULET_CLUSTER_FAR);

    if (used != CULET_UNKNOWN)
        atomic_store(usage->reported, used);
    return used;
}

uint64_t culet_usage_read(struct culet_usage *usage, uint64_t exact_from, int fresh)
{
    switch (usage->kind) {
    case CULET_USAGE_GROUP:
        return group_bytes(&usage->group, exact_from);
    case CULET_USAGE_PSS:
        return pss_bytes(usage, exact_from, fresh);
    case CULET_USAGE_SPACE:
        return space_bytes();
    case CULET_USAGE_REPORTED:
        return atomic_load(usage->reported);
    }
    return CULET_UNKNOWN;
}
