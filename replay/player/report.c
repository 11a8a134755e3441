#include "report.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {[CULET_EVENT_MALLOC] = "malloc",
                                    [CULET_EVENT_FREE] = "free",
                                    [CULET_EVENT_REALLOC] = "realloc",
                                    [CULET_EVENT_CALLOC] = "calloc",
                                    [CULET_EVENT_ALIGNED] = "aligned"};

static void print_number(const char *name, uint64_t value)
{
    printf("\"%s\":%" PRIu64 ",", name, value);
}

static void print_trace(const struct culet_operations *operations)
{
    print_number("operations", operations->count);
    for (int kind = CULET_EVENT_MALLOC; kind <= CULET_EVENT_ALIGNED; kind++)
        print_number(names[kind], operations->kinds[kind]);
    print_number("threads", operations->threads);
    print_number("requested_bytes", operations->requested_bytes);
    print_number("peak_live_bytes", operations->peak_live_bytes);
    print_number("most_blocks", operations->blocks);
    print_number("left_blocks", operations->left_blocks);
    print_number("left_bytes", operations->left_bytes);
    print_number("inherited_operations", operations->inherited);
    print_number("unknown_blocks", operations->unknown);
    print_number("implied_frees", operations->implied);
    printf("\"parent_missing\":%s,", operations->parent_missing ? "true" : "false");
    printf("\"recorded_seconds\":%.6f",
           operations->reading_count ? (double)operations->readings[operations->reading_count - 1].microseconds / 1e6
                                     : 0.0);
}

static uint64_t peak(const struct culet_replay_result *result)
{
    uint64_t most = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        if (result->samples[i].resident_bytes > most)
            most = result->samples[i].resident_bytes;
    return most;
}

/* The interval before sample `i`: by time where the replay kept the pauses, otherwise by operations. */
static double weight(const struct culet_replay_result *result, bool paced, size_t i)
{
    const struct culet_sample *one = &result->samples[i - 1], *next = &result->samples[i];

    return paced ? (double)(next->wall_ns - one->wall_ns) : (double)(next->index - one->index);
}

static void print_means(const struct culet_replay_result *result, bool paced)
{
    double resident = 0, live = 0, all = 0;

    for (size_t i = 1; i < result->sample_count; i++) {
        const struct culet_sample *one = &result->samples[i - 1], *next = &result->samples[i];
        double share = weight(result, paced, i);
        resident += share * ((double)one->resident_bytes + (double)next->resident_bytes) / 2;
        live += share * ((double)one->live_bytes + (double)next->live_bytes) / 2;
        all += share;
    }
    print_number("mean_resident_bytes",
                 (uint64_t)(all > 0 ? resident / all : (double)result->samples[0].resident_bytes));
    print_number("mean_live_bytes", (uint64_t)(all > 0 ? live / all : (double)result->samples[0].live_bytes));
}

static void print_replay(const struct culet_replay_result *result, bool paced)
{
    print_number("peak_resident_bytes", peak(result));
    print_means(result, paced);
    printf("\"cpu_seconds\":%.6f,\"wall_seconds\":%.6f,", (double)result->cpu_ns / 1e9, (double)result->wall_ns / 1e9);
    if (result->has_instructions)
        print_number("instructions", result->instructions);
    else
        printf("\"instructions\":null,");
    printf("\"samples\":[");
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct culet_sample *sample = &result->samples[i];
        printf("%s{\"operation\":%" PRIu64 ",\"at_seconds\":%.6f,\"wall_seconds\":%.6f,\"live_bytes\":%" PRIu64
               ",\"resident_bytes\":%" PRIu64 "}",
               i ? "," : "", sample->index, (double)sample->microseconds / 1e6, (double)sample->wall_ns / 1e9,
               sample->live_bytes, sample->resident_bytes);
    }
    printf("]");
}

void culet_report_print(const struct culet_operations *operations, const struct culet_replay_options *options,
                        const struct culet_replay_result *result)
{
    printf("{\"trace\":{");
    print_trace(operations);
    printf("}");
    if (result) {
        printf(",\"play\":{");
        print_replay(result, options->paced);
        printf("}");
    }
    printf("}\n");
}

void culet_report_list(const struct culet_operations *operations)
{
    for (size_t i = 0; i < operations->count; i++) {
        const struct culet_operation *operation = &operations->list[i];
        printf("%zu %u %s %u", i, operation->thread, names[operation->kind], operation->block);
        if (operation->kind != CULET_EVENT_FREE)
            printf(" %" PRIu64, (uint64_t)operation->bytes);
        if (operation->kind == CULET_EVENT_ALIGNED)
            printf(" %" PRIu64, (uint64_t)1 << operation->shift);
        printf("\n");
    }
}
