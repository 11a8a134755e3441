/* script.h - what is to be played: the operations of a trace in their order, with blocks by number, not by address. */
#ifndef CULET_SCRIPT_H
#define CULET_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum culet_op_kind { CULET_OP_MALLOC = 1, CULET_OP_CALLOC, CULET_OP_ALIGNED, CULET_OP_REALLOC, CULET_OP_FREE };
#define CULET_OP_KINDS 6

struct culet_op {
    uint64_t bytes : 48;
    uint64_t kind : 8;
    uint64_t shift : 8; /* of ALIGNED */
    uint32_t slot;      /* number of the block; numbers of freed blocks are used again */
    uint32_t thread;    /* from 0 on */
};

/* When operations took place; between two of these, nobody looked at the clock. */
struct culet_moment {
    uint64_t index;
    uint64_t microseconds;
};

struct culet_script {
    struct culet_op *ops;
    size_t count;
    struct culet_moment *moments;
    size_t moment_count;
    size_t slots;
    size_t threads;
    uint64_t *last; /* by thread: index of its last operation */

    uint64_t kinds[CULET_OP_KINDS]; /* how many of each */
    uint64_t requested_bytes;       /* by all operations together */
    uint64_t peak_live_bytes;
    uint64_t peak_index; /* after this operation */
    uint64_t left_blocks, left_bytes; /* not freed by the end */

    size_t inherited; /* operations at the start that a parent did before it forked */
    bool orphan;      /* a forked child's trace, and the parent's is not there */
    uint64_t unknown; /* frees and reallocs of blocks from outside the trace, left out */
    uint64_t implied; /* frees that are not in the trace, but their addresses were got again */
};

/* Reads the trace of a process, after those of its parents that led to it. Ends the program with a sentence where
 * there is something wrong.
 *
 * @param single whether all operations are to be done by one thread */
struct culet_script culet_script_read(const char *path, bool single);

#endif
