/* agent/request.h - the protocol: a request of one line, and its answer.
 *
 *   -> culet-agent 1 data=0..3 limit_ms=N wait_ms=N LF                                  counts of objects
 *   -> culet-agent 1 strings content=0|1 most_bytes=N limit_ms=N wait_ms=N LF           the strings (agent/strings.h)
 *   -> culet-agent 1 unused limit_ms=N wait_ms=N LF                                     code that never ran
 *   -> culet-agent 1 retain content=0|1 duplicates=0|1 heapsnapshot=0|1 limit_bytes=N path=0x... class=NAME|- limit_ms=N
 *      wait_ms=N LF                                                      retention (retain/options.h)
 *   -> culet-agent 1 retain samples content=0|1 limit_bytes=N limit_ms=N wait_ms=N LF  retention, also of the samples of
 *                                                                           the profile (retain/sampled.h)
 *   -> culet-agent 1 profile action=status|start|stop|write|booted|collect sample_bytes=N limit_ms=N wait_ms=N LF
 *                                                                           the memory profile (profile/ruby_profile.h)
 *   -> culet-agent 1 limit limit_ms=N wait_ms=N LF                                      the memory limit (limit/limit.h)
 *   -> culet-agent 1 figures LF                                                         the reading (reading/reading.h)
 *   <- ok BYTES LF and that many bytes; or: error MESSAGE LF; or: busy LF (try again) */
#pragma once

#include <stdbool.h>

#include "agent/objects.h"
#include "agent/strings.h"
#include "profile/ruby_profile.h"
#include "retain/options.h"

#define CULET_LINE_BYTES 384

enum culet_request_kind {
    CULET_OBJECTS,
    CULET_STRINGS,
    CULET_UNUSED,
    CULET_RETAIN,
    CULET_PROFILE,
    CULET_LIMIT,
    CULET_FIGURES
};

struct culet_request {
    enum culet_request_kind kind;
    double limit_seconds;
    struct culet_objects_options objects;
    struct culet_strings_options strings;
    struct culet_profile_request profile;
    struct culet_retain_options retain;
};

/* Whether a forked copy of the process answers the request. */
static inline bool culet_request_needs_copy(const struct culet_request *request)
{
    return request->kind == CULET_UNUSED || request->kind == CULET_RETAIN || request->kind == CULET_STRINGS;
}

/* Parses a line without its end. wait_ms: longest wait of the client for the main thread. Returns whether it is valid. */
bool culet_request_parse(const char *line, struct culet_request *request, long *wait_ms);
