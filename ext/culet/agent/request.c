#include "agent/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_MS 600000 /* upper bound of every limit */

/* Parses a request for the profile, exactly as in the protocol. Returns whether the line is one. */
static int parse_profile(const char *line, struct culet_profile_request *request, long *limit_ms, long *wait_ms)
{
    static const char *const actions[] = {"status", "start", "stop", "write", "booted", "collect"};
    char action[8], again[CULET_LINE_BYTES];

    if (sscanf(line, "culet-agent 1 profile action=%7[a-z] sample_bytes=%" SCNu64 " limit_ms=%ld wait_ms=%ld", action,
               &request->sample_bytes, limit_ms, wait_ms) != 4)
        return 0;
    snprintf(again, sizeof(again), "culet-agent 1 profile action=%s sample_bytes=%" PRIu64 " limit_ms=%ld wait_ms=%ld",
             action, request->sample_bytes, *limit_ms, *wait_ms);
    if (strcmp(line, again) != 0)
        return 0;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(action, actions[i]) == 0) {
            request->action = (enum culet_profile_action)i;
            return 1;
        }
    return 0;
}

/* Parses a request for retention. Returns whether the line is one. */
static int parse_retain(const char *line, struct culet_retain_options *options, long *limit_ms, long *wait_ms)
{
    if (sscanf(line,
               "culet-agent 1 retain content=%d duplicates=%d heapsnapshot=%d limit_bytes=%" SCNu64 " path=0x%" SCNx64
               " class=%159s limit_ms=%ld wait_ms=%ld",
               &options->content, &options->duplicates, &options->heapsnapshot, &options->limit_bytes,
               &options->address, options->class_name, limit_ms, wait_ms) == 8) {
        options->samples = 0;
    } else if (sscanf(line, "culet-agent 1 retain samples content=%d limit_bytes=%" SCNu64 " limit_ms=%ld wait_ms=%ld",
                      &options->content, &options->limit_bytes, limit_ms, wait_ms) == 4) {
        *options = (struct culet_retain_options){
            .samples = 1, .content = options->content, .limit_bytes = options->limit_bytes};
    } else {
        return 0;
    }
    if (strcmp(options->class_name, "-") == 0)
        options->class_name[0] = '\0';
    return 1;
}

bool culet_request_parse(const char *line, struct culet_request *request, long *wait_ms)
{
    long limit_ms;

    memset(request, 0, sizeof(*request));
    if (strcmp(line, "culet-agent 1 figures") == 0) {
        request->kind = CULET_FIGURES;
        *wait_ms = 0;
        return 1;
    }
    if (sscanf(line, "culet-agent 1 strings content=%d most_bytes=%" SCNu64 " limit_ms=%ld wait_ms=%ld",
               &request->strings.content, &request->strings.most_bytes, &limit_ms, wait_ms) == 4) {
        request->kind = CULET_STRINGS;
    } else if (sscanf(line, "culet-agent 1 unused limit_ms=%ld wait_ms=%ld", &limit_ms, wait_ms) == 2) {
        request->kind = CULET_UNUSED;
    } else if (parse_retain(line, &request->retain, &limit_ms, wait_ms)) {
        request->kind = CULET_RETAIN;
    } else if (sscanf(line, "culet-agent 1 limit limit_ms=%ld wait_ms=%ld", &limit_ms, wait_ms) == 2) {
        request->kind = CULET_LIMIT;
    } else if (parse_profile(line, &request->profile, &limit_ms, wait_ms)) {
        request->kind = CULET_PROFILE;
    } else if (sscanf(line, "culet-agent 1 data=%d limit_ms=%ld wait_ms=%ld", &request->objects.data, &limit_ms,
                      wait_ms) == 3) {
        request->kind = CULET_OBJECTS;
    } else {
        return 0;
    }
    if (limit_ms < 0 || limit_ms > LONGEST_MS || *wait_ms < 0 || *wait_ms > LONGEST_MS)
        return 0;
    request->limit_seconds = (double)limit_ms / 1000;
    request->objects.limit_seconds = request->strings.limit_seconds = request->limit_seconds;
    request->retain.limit_seconds = request->limit_seconds;
    return 1;
}
