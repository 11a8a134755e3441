#include "retain/ranking.h"

static int by_weight(const void *one, const void *other)
{
    const struct culet_ranked *a = one, *b = other;

    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

void culet_ranking_order(struct culet_ranking *ranking)
{
    culet_ranking_sort(ranking, by_weight);
}

bool culet_ranking_of_groups(const struct culet_analysis *analysis, uint32_t from, uint32_t past,
                             struct culet_ranking *ranking)
{
    for (uint32_t group = from; group < past; group++) {
        const struct culet_retained *sum = &analysis->of_group.items[group];
        if (sum->objects > 0 && !culet_ranking_add(analysis->memory, ranking, (struct culet_ranked){sum->bytes, group}))
            return false;
    }
    culet_ranking_order(ranking);
    return true;
}
