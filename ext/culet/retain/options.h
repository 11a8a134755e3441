/* retain/options.h - what an analysis is asked for. */
#pragma once

#include <stdint.h>

#define CULET_CLASS_BYTES 160 /* of a class's name, with its end */

struct culet_retain_options {
    int content;          /* whether contents and keys of strings may be shown */
    int duplicates;       /* equal strings */
    int heapsnapshot;     /* V8's format instead of the report */
    int samples;          /* what keeps the samples of the memory profile */
    double limit_seconds; /* of CPU time */
    uint64_t limit_bytes;
    uint64_t address;                   /* an object whose paths are shown; 0: none */
    char class_name[CULET_CLASS_BYTES]; /* whose instances are shown; "": none */
};
