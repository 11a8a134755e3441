/* retain/report.h - writes an analysis as one JSON object; its members are in DESIGN.md. */
#pragma once

#include "retain/analysis.h"
#include "retain/options.h"
#include "retain/sampled.h"

/* Facts for the report that the analysis does not have. */
struct culet_report_facts {
    long pid;
    const char *ruby;   /* version; NULL: not known */
    const char *source; /* "process" or "dump" */
    double cpu_start;   /* the process's CPU time before the analysis, in seconds */
    double fork_seconds;
    const uint64_t *malloc_in_use;       /* bytes; NULL: not known */
    const struct culet_sampled *sampled; /* what the profile has sampled; NULL: it was not asked for */
};

/* Writes the report. Returns NULL, or a sentence on why not. */
const char *culet_report_write(struct culet_analysis *analysis, const struct culet_retain_options *options,
                               const struct culet_report_facts *facts, struct culet_buffer *out);
