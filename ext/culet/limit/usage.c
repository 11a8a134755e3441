#include "limit/usage.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "limit/text.h"

#define UNKNOWN UINT64_MAX
#define FILE_BYTES 8192 /* memory.stat has 1 to 3 KiB */

static ssize_t read_text(int fd, char *text, size_t size)
{
    ssize_t length = pread(fd, text, size - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* Version 1 has the sums over the groups below with the prefix total_. */
uint64_t culet_usage_reclaimable(const char *stat)
{
    int old = strstr(stat, "total_inactive_file ") != NULL;
    uint64_t active = culet_text_field(stat, old ? "total_active_file " : "active_file ");
    uint64_t mapped = culet_text_field(stat, old ? "total_mapped_file " : "file_mapped ");

    return culet_text_field(stat, old ? "total_inactive_file " : "inactive_file ") +
           (active > mapped ? active - mapped : 0) + culet_text_field(stat, "slab_reclaimable ");
}

static uint64_t group_bytes(const struct culet_usage *usage, uint64_t exact_from)
{
    char text[FILE_BYTES];
    uint64_t used, free;

    if (read_text(usage->usage_fd, text, sizeof(text)) <= 0)
        return UNKNOWN;
    used = culet_text_number(text);
    if (used == UNKNOWN || used < exact_from || usage->stat_fd < 0)
        return used;
    if (read_text(usage->stat_fd, text, sizeof(text)) <= 0)
        return used;
    free = culet_usage_reclaimable(text);
    return used > free ? used - free : 0;
}

/* proc(5): the first number of statm is the address space in pages. */
static uint64_t space_bytes(void)
{
    char text[256];
    uint64_t pages = culet_text_read("/proc/self/statm", text, sizeof(text)) ? culet_text_number(text) : UNKNOWN;

    return pages == UNKNOWN ? UNKNOWN : pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t pss_bytes(struct culet_usage *usage, uint64_t exact_from, int fresh)
{
    int near = usage->cluster->total >= exact_from / 8 * 7;
    uint64_t used = culet_cluster_bytes(usage->cluster, fresh  ? CULET_CLUSTER_NOW
                                                        : near ? CULET_CLUSTER_NEAR
                                                               : CULET_CLUSTER_FAR);

    if (used != UNKNOWN)
        atomic_store(usage->reported, used);
    return used;
}

uint64_t culet_usage_read(struct culet_usage *usage, uint64_t exact_from, int fresh)
{
    switch (usage->kind) {
    case CULET_USAGE_GROUP:
        return group_bytes(usage, exact_from);
    case CULET_USAGE_PSS:
        return pss_bytes(usage, exact_from, fresh);
    case CULET_USAGE_SPACE:
        return space_bytes();
    case CULET_USAGE_REPORTED:
        return atomic_load(usage->reported);
    }
    return UNKNOWN;
}
