/* operations.h - a trace as the operations to replay, with block numbers in place of addresses. */
#pragma once

#include "../format.h"

#include <stddef.h>

struct culet_operation {
    uint64_t bytes : CULET_EVENT_SIZE_BITS;
    uint64_t kind : 8;  /* enum culet_event: MALLOC, FREE, REALLOC, CALLOC or ALIGNED */
    uint64_t shift : 8; /* of ALIGNED */
    uint32_t block;     /* numbers of freed blocks are reused */
    uint32_t thread;    /* from 0 */
};

/* When the operations from `index` on took place. */
struct culet_clock_reading {
    uint64_t index;
    uint64_t microseconds;
};

struct culet_operations {
    struct culet_operation *list;
    size_t count;
    struct culet_clock_reading *readings;
    size_t reading_count;
    size_t blocks;
    size_t threads;
    uint64_t *last; /* by thread: index of its last operation */

    uint64_t kinds[CULET_EVENT_MASK + 1]; /* number of each */
    uint64_t requested_bytes;             /* by all operations together */
    uint64_t peak_live_bytes;
    uint64_t peak_index;              /* reached by this operation */
    uint64_t left_blocks, left_bytes; /* not freed by the end */

    size_t inherited; /* leading operations of the parents */
    bool parent_missing;
    uint64_t unknown; /* frees and reallocs of blocks from outside the trace, skipped */
    uint64_t implied; /* frees that were not recorded, of addresses that were allocated again */
};

/* Reads the trace of a process, including its parents' up to the fork. Ends the program with a message where a trace is
 * damaged.
 *
 * @param single whether one thread replays all operations */
struct culet_operations culet_operations_read(const char *path, bool single);
