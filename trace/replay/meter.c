#define _GNU_SOURCE
#include "meter.h"

#include "complain.h"

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
static uint64_t counters_suffice; /* from so many bytes on */

/* How far the running counters of memory may lag behind, in pages: until Linux 6.2 each thread kept up to 64 changes to
 * itself (TASK_RSS_EVENTS_THRESH of mm/memory.c); since then each processor keeps a batch (percpu_counter). */
static uint64_t counter_lag(size_t threads)
{
    uint64_t processors = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
    uint64_t batch = processors > 16 ? 2 * processors : 32;
    unsigned major = 0, minor = 0;
    struct utsname name;

    if (uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 2)))
        return batch * processors;
    return 64 * ((uint64_t)threads + 1);
}

void culet_meter_open(size_t threads)
{
    rollup = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (statm < 0)
        culet_complain("cannot read /proc/self/statm: %s; mount /proc", strerror(errno));
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    counters_suffice = 100 * counter_lag(threads) * page_bytes;
}

static void slurp(int fd, char *text, size_t size)
{
    ssize_t got = pread(fd, text, size - 1, 0);

    if (got <= 0)
        culet_complain("cannot read this process's memory figures in /proc: %s", strerror(errno));
    text[got] = 0;
}

static uint64_t counted(void)
{
    unsigned long long size, resident, shared;
    char text[256];

    slurp(statm, text, sizeof text);
    if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
        culet_complain("/proc/self/statm is not as expected");
    return resident > shared ? (resident - shared) * page_bytes : 0;
}

uint64_t culet_meter_resident(void)
{
    uint64_t about = counted();
    char text[4096];

    if (rollup < 0 || about >= counters_suffice)
        return about;
    slurp(rollup, text, sizeof text);
    const char *line = strstr(text, "\nAnonymous:");
    if (!line)
        culet_complain("/proc/self/smaps_rollup has no line for anonymous memory");
    return strtoull(line + strlen("\nAnonymous:"), NULL, 10) * 1024;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t culet_meter_cpu(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t culet_meter_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

bool culet_meter_count_instructions(void)
{
    struct perf_event_attr wanted = {.type = PERF_TYPE_HARDWARE, .size = sizeof wanted,
                                     .config = PERF_COUNT_HW_INSTRUCTIONS, .inherit = 1, .exclude_kernel = 1,
                                     .exclude_hv = 1};

    counter = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return counter >= 0;
}

uint64_t culet_meter_instructions(void)
{
    uint64_t count = 0;

    if (read(counter, &count, sizeof count) != sizeof count)
        culet_complain("cannot read the counter of instructions: %s", strerror(errno));
    return count;
}
