/*
 * limit/usage.h - how much of a memory limit is in use, as the kernel's OOM killer counts (reading/group.h).
 * Knows no Ruby, allocates nothing, and may be called by any thread, one at a time.
 */
#ifndef CULET_LIMIT_USAGE_H
#define CULET_LIMIT_USAGE_H

#include <stdint.h>

#include "limit/cluster.h"
#include "reading/group.h"

enum culet_usage_kind {
    CULET_USAGE_GROUP,   /* a control group */
    CULET_USAGE_PSS,     /* the proportional set size of this process and its workers */
    CULET_USAGE_SPACE,   /* this process's address space (RLIMIT_AS) */
    CULET_USAGE_REPORTED /* what another process wrote into `reported` */
};

struct culet_usage {
    enum culet_usage_kind kind;
    struct culet_group group;      /* of it `charged` and `stat`, by descriptors: the process may have none left */
    struct culet_cluster *cluster; /* for CULET_USAGE_PSS, which writes into `reported` */
    _Atomic uint64_t *reported;
};

/*
 * The bytes in use; exact if they are `exact_from` or more, else an upper bound that costs less. fresh: of this moment;
 * else a proportional set size may be as old as its costs allow. CULET_UNKNOWN: it cannot be read.
 */
uint64_t culet_usage_read(struct culet_usage *usage, uint64_t exact_from, int fresh);

#endif
