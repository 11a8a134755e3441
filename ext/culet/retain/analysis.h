/* retain/analysis.h - sums by holder, set and class, from a walk.
 *
 * A group is what one holder dominates, or what one set of holders shares. Each reachable object is in one group. */
#pragma once

#include "retain/sets.h"

struct culet_retained {
    uint64_t bytes;
    uint64_t objects;
};

CULET_LIST(culet_retained_list, struct culet_retained)

/* The objects of a class, or what a group has of them. */
struct culet_class_sum {
    uint64_t key; /* of the class; of a pair: group << 32 | number of the class + 1 */
    struct culet_retained all;
    uint32_t first; /* id of one of the objects */
};

CULET_LIST(culet_class_sum_list, struct culet_class_sum)

struct culet_class_sums {
    struct culet_class_sum_list list;
    struct culet_numbers table; /* hash table: number in the list + 1 */
};

struct culet_analysis {
    struct culet_memory *memory;
    struct culet_graph *graph;
    struct culet_walk walk;
    struct culet_sets sets;
    struct culet_retained_list of_node;     /* by number: what it dominates, itself included */
    struct culet_numbers heaviest;          /* by number: the node with most bytes that it dominates at once; 0: none */
    struct culet_retained_list of_group;    /* holders first, then sets */
    struct culet_class_sums classes, pairs; /* pairs: of group and class */
    struct culet_numbers large_leaves;      /* ids of leaves of at least CULET_LARGE_LEAF bytes */
    uint64_t objects, slot_bytes, beyond_bytes, unreachable_objects, unreachable_bytes;
    uint64_t objects_block_bytes;   /* of all objects, reachable or not */
    struct culet_buffer text, file; /* of the last name */
};

#define CULET_LARGE_LEAF 4096

/* The groups that the report lists. */
struct culet_shown {
    struct culet_numbers holders, sets; /* the largest first */
    struct culet_numbers places;        /* by group: its place in these lists + 1 */
};

/* Analyses a graph. Returns NULL, or a sentence on why not. */
const char *culet_analysis_run(struct culet_analysis *analysis, struct culet_graph *graph);

/* The name of a class, until the next name is asked for. */
const struct culet_buffer *culet_analysis_class_name(struct culet_analysis *analysis, uint64_t key);

/* The name of a holder, likewise; sets the line of its place in `file`. */
const struct culet_buffer *culet_analysis_holder_name(struct culet_analysis *analysis, uint32_t holder, long *line);

/* The group of an object that the walk reached. */
uint32_t culet_analysis_group(const struct culet_analysis *analysis, uint32_t id);

/* The number of a group in the report: of a holder its place, of a set -1 less its place. Returns whether it is shown. */
bool culet_analysis_shown(const struct culet_analysis *analysis, const struct culet_shown *shown, uint32_t group,
                          long *id);

/* Writes `"holders":[...]`: the numbers of those of `count` groups that are shown. */
void culet_analysis_write_groups(const struct culet_analysis *analysis, const struct culet_shown *shown,
                                 const uint32_t *groups, uint32_t count, struct culet_buffer *out);

/* Frees what is not in arrays. */
void culet_analysis_free(struct culet_analysis *analysis);
