/* retain/dominators.h - the dominators of a graph whose nodes have the numbers of a depth-first walk.
 *
 * Semi-NCA, after Georgiadis, Tarjan, Werneck, "Finding Dominators in Practice", 2006. In a depth-first walk an edge to
 * a later node starts at its ancestor, so of these edges only the earliest source counts, and it is noted as the walk
 * meets it; only edges to an earlier node are stored. */
#pragma once

#include "retain/memory.h"

#define CULET_ROOT 1u /* number of the root; 0 is no node */

struct culet_back_edge {
    uint32_t from, next; /* next edge to the same node; 0: none */
};

CULET_LIST(culet_back_edges, struct culet_back_edge)

/* Before the call: parents, and the edges. After it: the dominator tree. Index: a node's number, 1 to count. */
struct culet_dominators {
    uint32_t count;
    struct culet_numbers parent;  /* of the walk; then the immediate dominator */
    struct culet_numbers semi;    /* the earliest source of an edge from an ancestor; then free */
    struct culet_numbers label;   /* the last edge from a later node, 0: none; then the node's depth */
    struct culet_numbers jump;    /* an ancestor further up */
    struct culet_back_edges back; /* the first is unused */
};

/* Adds the next node. Returns its number; 0: no memory. parent: 0 for the root. */
uint32_t culet_dominators_node(struct culet_memory *memory, struct culet_dominators *tree, uint32_t parent);

/* Adds an edge between two nodes. */
void culet_dominators_edge(struct culet_memory *memory, struct culet_dominators *tree, uint32_t from, uint32_t to);

/* Makes the tree. Returns false without memory or time. */
bool culet_dominators_make(struct culet_memory *memory, struct culet_dominators *tree);

/* The nearest common dominator of two nodes. */
uint32_t culet_dominators_common(const struct culet_dominators *tree, uint32_t one, uint32_t other);
