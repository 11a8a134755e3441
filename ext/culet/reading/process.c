#include "reading/process.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIGURES(type) (sizeof(type) / sizeof(uint64_t))

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];

    text[0] = '\0';
    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
           culet_kernel_file_read_path(path, text, size);
}

/* proc(5): statm has pages. */
bool culet_read_sizes(const char *folder, struct culet_sizes *sizes)
{
    char text[256];
    unsigned long long space, resident, files;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    *sizes = (struct culet_sizes){CULET_UNKNOWN, CULET_UNKNOWN, CULET_UNKNOWN};
    if (!read_file(folder, "statm", text, sizeof(text)) ||
        sscanf(text, "%llu %llu %llu", &space, &resident, &files) != 3)
        return false;
    *sizes = (struct culet_sizes){space * page, resident * page, files * page};
    return true;
}

uint64_t culet_resident_bytes(void)
{
    struct culet_sizes sizes;

    (void)culet_read_sizes(CULET_OWN_PROCESS, &sizes);
    return sizes.resident;
}

uint64_t culet_anonymous_bytes(void)
{
    struct culet_sizes sizes;

    return culet_read_sizes(CULET_OWN_PROCESS, &sizes) ? culet_sizes_anonymous(&sizes) : CULET_UNKNOWN;
}

/* proc(5): fields 3, 10, 14, 15 and 22 of stat, behind the name, which may contain anything. */
bool culet_read_stat(const char *folder, struct culet_stat *stat)
{
    char text[1024], *fields;
    unsigned long long faults, user, system, start;

    if (!read_file(folder, "stat", text, sizeof(text)) || (fields = strrchr(text, ')')) == NULL)
        return false;
    if (sscanf(fields + 1, " %c %*d %*d %*d %*d %*d %*u %llu %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
               &stat->state, &faults, &user, &system, &start) != 5)
        return false;
    stat->faults = faults;
    stat->ticks = user + system;
    stat->start = start;
    return strchr("ZX", stat->state) == NULL;
}

/* proc(5): smaps_rollup has KiB. In the order of struct culet_rollup. */
bool culet_read_rollup(const char *folder, struct culet_rollup *rollup)
{
    static const char *const names[FIGURES(struct culet_rollup)] = {
        "Rss", "Pss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty", "Anonymous", "Swap",
    };
    uint64_t figures[FIGURES(struct culet_rollup)];
    char text[4096];
    bool read = read_file(folder, "smaps_rollup", text, sizeof(text));

    for (size_t i = 0; i < FIGURES(struct culet_rollup); i++) {
        uint64_t kilobytes = culet_number_of(text, names[i]);
        figures[i] = kilobytes == CULET_UNKNOWN ? CULET_UNKNOWN : kilobytes << 10;
    }
    memcpy(rollup, figures, sizeof(*rollup));
    return read;
}
