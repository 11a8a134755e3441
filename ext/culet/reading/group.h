/* reading/group.h - a control group with memory (cgroups(7), versions 1 and 2). Knows no Ruby, allocates nothing. */
#pragma once

#include "reading/kernel_file.h"

/* `charged`, `limit` and `stat` are of the group whose limit counts; `kills` is of the process's own. */
struct culet_group {
    struct culet_kernel_file charged; /* memory.current, memory.usage_in_bytes */
    struct culet_kernel_file limit;   /* memory.max, memory.limit_in_bytes */
    struct culet_kernel_file stat;    /* memory.stat */
    struct culet_kernel_file kills;   /* memory.events, memory.oom_control */
};

/* The used bytes of the limit: the charged bytes less those that the kernel reclaims before it kills. Charged bytes
 * that are CULET_UNKNOWN stay that; reclaimable ones count as none. */
uint64_t culet_group_used(uint64_t charged, uint64_t reclaimable);

/* The bytes that the kernel can reclaim, or CULET_UNKNOWN: page cache that no process maps, and the kernel's own caches.
 * With many groups, tens of microseconds. */
uint64_t culet_group_reclaimable(const struct culet_group *group);

/* Processes of the group that the kernel has killed for lack of memory, or CULET_UNKNOWN. */
uint64_t culet_group_kills(const struct culet_group *group);
