/* retain/ranking.h - groups of objects, and other numbered things, by weight. */
#pragma once

#include "retain/analysis.h"

struct culet_ranked {
    uint64_t weight;
    uint32_t number;
};

CULET_LIST(culet_ranking, struct culet_ranked)

/* The largest first; of equal ones the lowest number. */
void culet_ranking_order(struct culet_ranking *ranking);

/* Adds the groups of a range that have objects, by their bytes, and sorts. Returns false without memory. */
bool culet_ranking_of_groups(const struct culet_analysis *analysis, uint32_t from, uint32_t past,
                             struct culet_ranking *ranking);
