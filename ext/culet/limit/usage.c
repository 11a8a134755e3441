#include "limit/usage.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNKNOWN UINT64_MAX
#define FILE_BYTES 8192 /* memory.stat has 1 to 3 KiB */

/*
 * The kernel walks the page tables for a PSS, so it is read anew once a second at most, and for 0.1 % of the time. In
 * between, the change of the resident bytes is added.
 */
#define PSS_SECONDS 1.0
#define PSS_SHARE 1000

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A number at the start of a text; UNKNOWN without one. */
static uint64_t number(const char *text)
{
    return *text >= '0' && *text <= '9' ? (uint64_t)strtoull(text, NULL, 10) : UNKNOWN;
}

static ssize_t read_text(int fd, char *text, size_t size)
{
    ssize_t length = pread(fd, text, size - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* Opens the file at each call, because a forked child would read its parent's. */
static int read_own(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0)
        return 0;
    length = read_text(fd, text, size);
    close(fd);
    return length > 0;
}

/* The number behind a name at the start of a line; 0 without the line. */
static uint64_t field(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0)
            continue;
        line += length;
        line += strspn(line, " :\t");
        return number(line) == UNKNOWN ? 0 : number(line);
    }
    return 0;
}

/*
 * Page cache that no process maps, and the kernel's own caches. Version 1 has the sums over the groups below with the
 * prefix total_.
 */
static uint64_t reclaimable(const char *stat)
{
    int old = strstr(stat, "total_inactive_file ") != NULL;
    uint64_t active = field(stat, old ? "total_active_file " : "active_file ");
    uint64_t mapped = field(stat, old ? "total_mapped_file " : "file_mapped ");

    return field(stat, old ? "total_inactive_file " : "inactive_file ") + (active > mapped ? active - mapped : 0) +
           field(stat, "slab_reclaimable ");
}

static uint64_t group_bytes(const struct culet_usage *usage, uint64_t exact_from)
{
    char text[FILE_BYTES];
    uint64_t used, free;

    if (read_text(usage->usage_fd, text, sizeof(text)) <= 0)
        return UNKNOWN;
    used = number(text);
    if (used == UNKNOWN || used < exact_from || usage->stat_fd < 0)
        return used;
    if (read_text(usage->stat_fd, text, sizeof(text)) <= 0)
        return used;
    free = reclaimable(text);
    return used > free ? used - free : 0;
}

/* The n-th number of /proc/self/statm in bytes: 0 the address space, 1 resident. */
static uint64_t statm_bytes(int n)
{
    char text[256], *at = text;
    uint64_t pages;

    if (!read_own("/proc/self/statm", text, sizeof(text)))
        return UNKNOWN;
    for (; n > 0; n--)
        at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
    pages = number(at);
    return pages == UNKNOWN ? UNKNOWN : pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t pss_bytes(struct culet_usage *usage, uint64_t exact_from)
{
    char text[4096];
    uint64_t resident = statm_bytes(1);
    double began = now();

    if (resident == UNKNOWN || resident < exact_from)
        return resident;
    if (usage->pss == 0 || began - usage->read_at > PSS_SECONDS + usage->read_costs * PSS_SHARE) {
        if (!read_own("/proc/self/smaps_rollup", text, sizeof(text)))
            return resident;
        usage->pss = field(text, "Pss:") * 1024;
        usage->resident = resident;
        usage->read_at = now();
        usage->read_costs = usage->read_at - began;
    }
    if (resident >= usage->resident)
        return usage->pss + (resident - usage->resident);
    return usage->pss > usage->resident - resident ? usage->pss - (usage->resident - resident) : 0;
}

uint64_t culet_usage_read(struct culet_usage *usage, uint64_t exact_from)
{
    switch (usage->kind) {
    case CULET_USAGE_GROUP:
        return group_bytes(usage, exact_from);
    case CULET_USAGE_PSS:
        return pss_bytes(usage, exact_from);
    case CULET_USAGE_SPACE:
        return statm_bytes(0);
    case CULET_USAGE_REPORTED:
        return atomic_load(usage->reported);
    }
    return UNKNOWN;
}
