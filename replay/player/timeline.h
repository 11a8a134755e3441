/* timeline.h - the events of a process and of the parents it was forked from, in the order of their sequence numbers.
 *
 * The numbers index an array, so nothing is sorted. */
#pragma once

#include "trace_file.h"

/* A step has the kind of its event. A realloc has two numbers, hence two steps: REALLOC removes the block from its
 * address, one of these puts it at the new one, or back. */
enum { CULET_STEP_REALLOC_END = CULET_EVENT_MASK + 1, CULET_STEP_REALLOC_FAILED };

struct culet_step {
    uint64_t bytes : CULET_EVENT_SIZE_BITS; /* of REALLOC: the index of its END */
    uint64_t kind : 8;                      /* 0: no event has this number */
    uint64_t shift : 8;
    uint64_t address;
    uint32_t block; /* of a realloc's END, set at its BEGIN */
    uint32_t thread;
    uint64_t microseconds;
};

struct culet_timeline {
    struct culet_step *steps;
    size_t count;
    size_t own;          /* index of the first step that is not a parent's */
    bool parent_missing; /* a forked child's trace without the parent's */
};

/* Reads the trace; ends the program with a message where a file is damaged. */
struct culet_timeline culet_timeline_read(const char *path);

void culet_timeline_free(struct culet_timeline *timeline);
