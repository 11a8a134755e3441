/* retain/sets.h - which holders together keep what none of them dominates.
 *
 * What the root dominates, but no holder, is reached from several holders. Their sets are propagated along the
 * references between what holders and shared objects dominate, until nothing changes: a set only grows, and beyond
 * CULET_SET_HOLDERS holders it is the one set of "many". */
#pragma once

#include "retain/walk.h"

#define CULET_SET_HOLDERS 4
#define CULET_MANY 1u /* number of the set of many holders; 0 is the empty set */

struct culet_holder_set {
    uint32_t holders[CULET_SET_HOLDERS]; /* numbers of holders, ascending; of the set of many those with the most */
    uint32_t count;
};

CULET_LIST(culet_holder_sets, struct culet_holder_set)

/* A leaf that several holders share. */
struct culet_shared_leaf {
    uint32_t id, set;
};

CULET_LIST(culet_shared_leaves, struct culet_shared_leaf)

struct culet_sets {
    struct culet_holder_sets sets;
    struct culet_numbers table;        /* hash table of the sets */
    struct culet_numbers of_top;       /* by number of a node below the root that is no holder: its set */
    struct culet_shared_leaves leaves; /* by id */
};

/* Finds the sets. Sorts the walk's crossings by their target. Returns false without memory or time. */
bool culet_sets_make(struct culet_walk *walk, struct culet_sets *sets);

/* The set of a leaf that the root dominates. */
uint32_t culet_sets_of_leaf(const struct culet_sets *sets, uint32_t id);
