#define _GNU_SOURCE
#include "process/pauses.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "output/json.h"
#include "process/proc.h"

#include <stdlib.h>
#include <string.h>

void culet_pauses_add(struct culet_pauses *pauses, uint64_t length_ns, uint64_t stopping_ns, uint64_t cpu_ns)
{
    CULET_APPEND(pauses->lengths, pauses->count, pauses->room) = length_ns;
    pauses->sum_ns += length_ns;
    pauses->cpu_ns += cpu_ns;
    pauses->stopping_ns += stopping_ns;
    if (length_ns > pauses->longest_ns)
        pauses->longest_ns = length_ns;
}

/* The percentile of the sorted lengths, in seconds. */
static double percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
    return count ? (double)sorted[(count * percent + 99) / 100 - 1] / 1e9 : 0;
}

/* Peak RSS of this program; 0: unknown. (getrusage includes the time before exec.) */
static uint64_t peak_rss(void)
{
    long kilobytes = 0;

    return culet_proc_number("/proc/self/status", "VmHWM", &kilobytes) ? (uint64_t)kilobytes * 1024 : 0;
}

void culet_pauses_write(const struct culet_pauses *pauses)
{
    uint64_t *sorted = culet_new(pauses->count, sizeof *sorted);
    struct culet_json json;

    if (pauses->count)
        memcpy(sorted, pauses->lengths, pauses->count * sizeof *sorted);
    qsort(sorted, pauses->count, sizeof *sorted, culet_by_word);
    culet_json_begin(&json, "reading");
    culet_json_number(&json, "pauses", pauses->count);
    culet_json_seconds(&json, "paused_seconds", pauses->sum_ns);
    culet_json_seconds(&json, "stopping_seconds", pauses->stopping_ns);
    culet_json_seconds(&json, "paused_cpu_seconds", pauses->cpu_ns);
    culet_json_seconds(&json, "cpu_seconds", culet_cpu_now());
    culet_json_float(&json, "median_pause_seconds", percentile(sorted, pauses->count, 50));
    culet_json_float(&json, "p95_pause_seconds", percentile(sorted, pauses->count, 95));
    culet_json_seconds(&json, "longest_pause_seconds", pauses->longest_ns);
    culet_json_number(&json, "peak_rss_bytes", peak_rss());
    culet_json_end(&json);
    free(sorted);
}
