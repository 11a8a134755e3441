#define _GNU_SOURCE
#include "measure.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int rollup = -1;
static int statm = -1;
static int counter = -1;
static uint64_t page_bytes;
static uint64_t statm_suffices; /* from this size on: the counters lag by less than 1 % */

/* By how many pages statm may lag: before Linux 6.2, 64 per thread (TASK_RSS_EVENTS_THRESH in mm/memory.c); since then,
 * a percpu_counter batch per processor. */
static uint64_t counter_lag(size_t threads)
{
    uint64_t processors = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
    uint64_t batch = processors > 16 ? 2 * processors : 32;
    unsigned major = 0, minor = 0;
    struct utsname name;

    if (uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
        (major > 6 || (major == 6 && minor >= 2)))
        return batch * processors;
    return 64 * ((uint64_t)threads + 1);
}

void culet_measure_open(size_t threads)
{
    rollup = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (statm < 0)
        errx(1, "cannot read /proc/self/statm: %s; mount /proc", strerror(errno));
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    statm_suffices = 100 * counter_lag(threads) * page_bytes;
}

static void read_text(int fd, char *text, size_t size)
{
    ssize_t got = pread(fd, text, size - 1, 0);

    if (got <= 0)
        err(1, "cannot read memory statistics in /proc");
    text[got] = 0;
}

static uint64_t anonymous_in_statm(void)
{
    unsigned long long size, resident, shared;
    char text[256];

    read_text(statm, text, sizeof text);
    if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
        errx(1, "cannot parse /proc/self/statm");
    return resident > shared ? (resident - shared) * page_bytes : 0;
}

uint64_t culet_measure_resident(void)
{
    uint64_t estimate = anonymous_in_statm();
    char text[4096];

    if (rollup < 0 || estimate >= statm_suffices)
        return estimate;
    read_text(rollup, text, sizeof text);
    const char *line = strstr(text, "\nAnonymous:");
    if (!line)
        errx(1, "/proc/self/smaps_rollup has no Anonymous line");
    return strtoull(line + strlen("\nAnonymous:"), NULL, 10) * 1024;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t culet_measure_cpu(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t culet_measure_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

bool culet_measure_count_instructions(void)
{
    struct perf_event_attr wanted = {.type = PERF_TYPE_HARDWARE,
                                     .size = sizeof wanted,
                                     .config = PERF_COUNT_HW_INSTRUCTIONS,
                                     .inherit = 1,
                                     .exclude_kernel = 1,
                                     .exclude_hv = 1};

    counter = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return counter >= 0;
}

uint64_t culet_measure_instructions(void)
{
    uint64_t count = 0;

    if (read(counter, &count, sizeof count) != sizeof count)
        err(1, "cannot read the instruction counter");
    return count;
}
