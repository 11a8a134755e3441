#include "report.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[CULET_OP_KINDS] = {[CULET_OP_MALLOC] = "malloc", [CULET_OP_CALLOC] = "calloc",
                                                  [CULET_OP_ALIGNED] = "aligned", [CULET_OP_REALLOC] = "realloc",
                                                  [CULET_OP_FREE] = "free"};

static void number(const char *name, uint64_t value)
{
    printf("\"%s\":%" PRIu64 ",", name, value);
}

static void about_trace(const struct culet_script *script)
{
    number("operations", script->count);
    for (int kind = 1; kind < CULET_OP_KINDS; kind++)
        number(names[kind], script->kinds[kind]);
    number("threads", script->threads);
    number("requested_bytes", script->requested_bytes);
    number("peak_live_bytes", script->peak_live_bytes);
    number("most_blocks", script->slots);
    number("left_blocks", script->left_blocks);
    number("left_bytes", script->left_bytes);
    number("inherited_operations", script->inherited);
    number("unknown_blocks", script->unknown);
    number("implied_frees", script->implied);
    printf("\"parent_missing\":%s,", script->orphan ? "true" : "false");
    printf("\"recorded_seconds\":%.6f",
           script->moment_count ? (double)script->moments[script->moment_count - 1].microseconds / 1e6 : 0.0);
}

static uint64_t peak(const struct culet_performance *performance)
{
    uint64_t most = 0;

    for (size_t i = 0; i < performance->sample_count; i++)
        if (performance->samples[i].resident_bytes > most)
            most = performance->samples[i].resident_bytes;
    return most;
}

/* Where the replay kept the program's pauses each sample stands for its time, else for its operations. */
static double weight(const struct culet_performance *performance, bool paced, size_t i)
{
    const struct culet_sample *one = &performance->samples[i - 1], *next = &performance->samples[i];

    return paced ? (double)(next->wall_ns - one->wall_ns) : (double)(next->index - one->index);
}

static void means(const struct culet_performance *performance, bool paced)
{
    double resident = 0, live = 0, all = 0;

    for (size_t i = 1; i < performance->sample_count; i++) {
        const struct culet_sample *one = &performance->samples[i - 1], *next = &performance->samples[i];
        double share = weight(performance, paced, i);
        resident += share * ((double)one->resident_bytes + (double)next->resident_bytes) / 2;
        live += share * ((double)one->live_bytes + (double)next->live_bytes) / 2;
        all += share;
    }
    number("mean_resident_bytes", (uint64_t)(all > 0 ? resident / all : (double)performance->samples[0].resident_bytes));
    number("mean_live_bytes", (uint64_t)(all > 0 ? live / all : (double)performance->samples[0].live_bytes));
}

static void about_play(const struct culet_performance *performance, bool paced)
{
    number("peak_resident_bytes", peak(performance));
    means(performance, paced);
    printf("\"cpu_seconds\":%.6f,\"wall_seconds\":%.6f,", (double)performance->cpu_ns / 1e9,
           (double)performance->wall_ns / 1e9);
    if (performance->counted)
        number("instructions", performance->instructions);
    else
        printf("\"instructions\":null,");
    printf("\"samples\":[");
    for (size_t i = 0; i < performance->sample_count; i++) {
        const struct culet_sample *sample = &performance->samples[i];
        printf("%s{\"operation\":%" PRIu64 ",\"at_seconds\":%.6f,\"wall_seconds\":%.6f,\"live_bytes\":%" PRIu64
               ",\"resident_bytes\":%" PRIu64 "}",
               i ? "," : "", sample->index, (double)sample->microseconds / 1e6, (double)sample->wall_ns / 1e9,
               sample->live_bytes, sample->resident_bytes);
    }
    printf("]");
}

void culet_report(const struct culet_script *script, const struct culet_settings *settings,
                  const struct culet_performance *performance)
{
    printf("{\"trace\":{");
    about_trace(script);
    printf("}");
    if (performance) {
        printf(",\"play\":{");
        about_play(performance, settings->paced);
        printf("}");
    }
    printf("}\n");
}

void culet_report_operations(const struct culet_script *script)
{
    for (size_t i = 0; i < script->count; i++) {
        const struct culet_op *op = &script->ops[i];
        printf("%zu %u %s %u", i, op->thread, names[op->kind], op->slot);
        if (op->kind != CULET_OP_FREE)
            printf(" %" PRIu64, (uint64_t)op->bytes);
        if (op->kind == CULET_OP_ALIGNED)
            printf(" %" PRIu64, (uint64_t)1 << op->shift);
        printf("\n");
    }
}
