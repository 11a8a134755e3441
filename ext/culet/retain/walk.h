/* retain/walk.h - one depth-first walk over a graph, its dominators, and which holders share what none has alone.
 *
 * Nodes of the dominator tree are the root, the holders, and the objects with references. Objects without references,
 * most of a heap, are leaves: each has only its nearest dominator. */
#pragma once

#include "retain/dominators.h"
#include "retain/graph.h"

/* An entry of `entries`: 0, a node's number, or CULET_LEAF with the layer and the dominator's number. The mask gets either
 * number. */
#define CULET_LEAF 0x80000000u
#define CULET_LEAF_LAYER 28
#define CULET_NUMBER_MASK 0x0fffffffu

/* An entry of `objects`: an id, or CULET_IS_HOLDER with the number of a holder. */
#define CULET_IS_HOLDER 0x80000000u

/* A reference between what different holders or shared objects dominate. */
struct culet_crossing {
    uint32_t from; /* number of a node */
    uint32_t to;   /* number of a node, or CULET_LEAF with an id */
};

CULET_LIST(culet_crossings, struct culet_crossing)

struct culet_walk {
    struct culet_graph *graph;
    struct culet_memory *memory;
    struct culet_dominators tree;
    struct culet_numbers entries; /* by id */
    struct culet_numbers objects; /* by number */
    struct culet_numbers top;     /* by number: the node below the root that dominates it */
    struct culet_crossings crossings;
    uint32_t layer_end[CULET_LAYERS]; /* number of the layer's last node */
};

/* Walks, which sets the entries of reachable objects, and makes the tree, if wanted. Returns false without memory or time. */
bool culet_walk_run(struct culet_walk *walk, bool with_tree);

static inline bool culet_walk_is_holder(const struct culet_walk *walk, uint32_t number)
{
    return (walk->objects.items[number] & CULET_IS_HOLDER) != 0;
}

/* The layer of a node. */
int culet_walk_layer(const struct culet_walk *walk, uint32_t number);
