#define _GNU_SOURCE
#include "pauses.h"

#include "buffer.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t culet_pauses_cpu(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void culet_pauses_add(struct culet_pauses *pauses, uint64_t length_ns, uint64_t stopping_ns, uint64_t cpu_ns)
{
    uint64_t microseconds = length_ns / 1000;

    pauses->lengths = culet_stretch(pauses->lengths, &pauses->room, pauses->count + 1, sizeof *pauses->lengths);
    pauses->lengths[pauses->count++] = microseconds < UINT32_MAX ? (uint32_t)microseconds : UINT32_MAX;
    pauses->sum_ns += length_ns;
    pauses->cpu_ns += cpu_ns;
    pauses->stopping_ns += stopping_ns;
    if (length_ns > pauses->longest_ns)
        pauses->longest_ns = length_ns;
}

static int by_length(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    return (one > other) - (one < other);
}

/* The length that `percent` of all pauses do not exceed, in seconds, of `sorted` lengths. */
static double percentile(const uint32_t *sorted, size_t count, unsigned percent)
{
    return count ? sorted[(count * percent + 99) / 100 - 1] / 1e6 : 0;
}

/* The most that this program had in memory; 0 where the kernel does not tell. (getrusage counts what ran before exec, too.) */
static uint64_t peak_bytes(void)
{
    unsigned long long kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");

    while (file && !kilobytes && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtoull(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

void culet_pauses_tell(const struct culet_pauses *pauses)
{
    uint32_t *sorted = culet_new(pauses->count, sizeof *sorted);
    struct culet_json json;

    if (pauses->count)
        memcpy(sorted, pauses->lengths, pauses->count * sizeof *sorted);
    qsort(sorted, pauses->count, sizeof *sorted, by_length);
    culet_json_begin(&json, "reading");
    culet_json_number(&json, "pauses", pauses->count);
    culet_json_float(&json, "paused_seconds", (double)pauses->sum_ns / 1e9);
    culet_json_float(&json, "stopping_seconds", (double)pauses->stopping_ns / 1e9);
    culet_json_float(&json, "paused_cpu_seconds", (double)pauses->cpu_ns / 1e9);
    culet_json_float(&json, "cpu_seconds", (double)culet_pauses_cpu() / 1e9);
    culet_json_float(&json, "median_pause_seconds", percentile(sorted, pauses->count, 50));
    culet_json_float(&json, "p95_pause_seconds", percentile(sorted, pauses->count, 95));
    culet_json_float(&json, "longest_pause_seconds", (double)pauses->longest_ns / 1e9);
    culet_json_number(&json, "peak_rss_bytes", peak_bytes());
    culet_json_end(&json);
    free(sorted);
}
