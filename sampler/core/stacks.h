/* stacks.h - interned stacks: a tree whose nodes are frames.
 *
 *   node 0     no frame
 *   node n     frame `word`, called by node `parent`, which is smaller than n
 *
 * A stack is the number of its innermost node. Stacks that begin alike share nodes. The nodes and their index take at
 * most 4 MiB. The caller locks. */
#pragma once

#include "index.h"

#include <stddef.h>

#define CULET_STACK_NODES 196608u /* 3 MiB */

struct culet_stack_node {
    uint64_t word;
    uint32_t parent;
    uint32_t mark; /* number of the last culet_tables_top that has found it */
};

struct culet_stacks {
    struct culet_stack_node *node;
    struct culet_index index; /* by word and parent */
    uint32_t count;           /* nodes in use, node 0 among them */
};

/* Maps empty tables. False: no memory. */
bool culet_stacks_create(struct culet_stacks *stacks);
void culet_stacks_destroy(struct culet_stacks *stacks);

/* The stack of `count` words, innermost first. A stack that has no room is CULET_MARK_FULL, for which there is always
 * room. */
uint32_t culet_stacks_intern(struct culet_stacks *stacks, const uint64_t *words, size_t count);
