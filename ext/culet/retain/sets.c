#include "retain/sets.h"

#include <string.h>

#include "reader/src/base/search.h"

#define MOST_SETS 1000000 /* further ones count as many */

/* ---- sets, each once ---- */

static uint32_t hash_of(const struct culet_holder_set *set)
{
    uint64_t hash = set->count;

    for (uint32_t i = 0; i < set->count; i++)
        hash = (hash ^ set->holders[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32);
}

static bool is_equal(const struct culet_holder_set *one, const struct culet_holder_set *other)
{
    return one->count == other->count &&
           memcmp(one->holders, other->holders, one->count * sizeof(one->holders[0])) == 0;
}

static uint32_t hash_of_number(const void *sets, uint32_t number)
{
    return hash_of(&((const struct culet_holder_sets *)sets)->items[number]);
}

static uint32_t number_of(struct culet_memory *memory, struct culet_sets *sets, const struct culet_holder_set *set)
{
    uint32_t mask, at, found;

    if (!culet_table_reserve(memory, &sets->table, CULET_MANY + 1, sets->sets.count, hash_of_number, &sets->sets))
        return CULET_MANY;
    mask = (uint32_t)sets->table.count - 1;
    for (at = hash_of(set) & mask; (found = sets->table.items[at]) != 0; at = (at + 1) & mask)
        if (is_equal(&sets->sets.items[found], set))
            return found;
    if (sets->sets.count >= MOST_SETS || !culet_holder_sets_add(memory, &sets->sets, *set))
        return CULET_MANY;
    found = (uint32_t)sets->sets.count - 1;
    sets->table.items[at] = found;
    return found;
}

static uint32_t merged(struct culet_memory *memory, struct culet_sets *sets, uint32_t one, uint32_t other)
{
    struct culet_holder_set result = {.count = 0};
    const struct culet_holder_set *a, *b;
    uint32_t i = 0, j = 0;

    if (one == other || other == 0)
        return one;
    if (one == 0 || other == CULET_MANY)
        return other;
    if (one == CULET_MANY)
        return one;
    a = &sets->sets.items[one];
    b = &sets->sets.items[other];
    while (i < a->count || j < b->count) {
        uint32_t next;
        if (j == b->count || (i < a->count && a->holders[i] < b->holders[j]))
            next = a->holders[i++];
        else if (i == a->count || b->holders[j] < a->holders[i])
            next = b->holders[j++];
        else
            next = (j++, a->holders[i++]);
        if (result.count == CULET_SET_HOLDERS)
            return CULET_MANY;
        result.holders[result.count++] = next;
    }
    return number_of(memory, sets, &result);
}

/* ---- propagation ---- */

/* Units are the holders' nodes and what they share: nodes below the root keep their numbers, leaves follow. */
struct propagation {
    struct culet_walk *walk;
    struct culet_memory *memory;
    struct culet_sets *sets;
    struct culet_numbers of;    /* by unit: its set */
    struct culet_numbers first; /* by unit: where its targets begin */
    struct culet_numbers targets;
    struct culet_numbers work; /* units whose set has changed */
    struct culet_numbers queued;
};

static int by_target(const void *one, const void *other)
{
    const struct culet_crossing *a = one, *b = other;

    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

static uint32_t leaf_unit(const struct propagation *propagation, uint32_t leaf)
{
    return propagation->walk->tree.count + 1 + leaf;
}

/* Lists the leaves that are shared; they are the last crossings. */
static bool list_leaves(struct propagation *propagation)
{
    const struct culet_crossings *crossings = &propagation->walk->crossings;
    struct culet_shared_leaves *leaves = &propagation->sets->leaves;

    for (size_t i = 0; i < crossings->count; i++) {
        uint32_t id = crossings->items[i].to & ~CULET_LEAF;
        if ((crossings->items[i].to & CULET_LEAF) == 0 ||
            (leaves->count > 0 && leaves->items[leaves->count - 1].id == id))
            continue;
        if (!culet_shared_leaves_add(propagation->memory, leaves, (struct culet_shared_leaf){id, 0}))
            return false;
    }
    return true;
}

/* Counts each unit's targets, then places them. */
static bool list_targets(struct propagation *propagation)
{
    const struct culet_walk *walk = propagation->walk;
    const struct culet_crossings *crossings = &walk->crossings;
    size_t units = walk->tree.count + 1 + propagation->sets->leaves.count;
    uint32_t *first, leaf = 0;

    if (crossings->count > UINT32_MAX || !culet_numbers_reserve(propagation->memory, &propagation->first, units + 2) ||
        !culet_numbers_reserve(propagation->memory, &propagation->targets, crossings->count + 1) ||
        !culet_numbers_reserve(propagation->memory, &propagation->of, units + 1) ||
        !culet_numbers_reserve(propagation->memory, &propagation->queued, (units >> 5) + 1))
        return false;
    first = propagation->first.items;
    for (size_t i = 0; i < crossings->count; i++)
        first[walk->top.items[crossings->items[i].from] + 2]++;
    for (size_t unit = 2; unit <= units + 1; unit++)
        first[unit] += first[unit - 1];
    for (size_t i = 0; i < crossings->count; i++) {
        uint32_t to = crossings->items[i].to;
        if (to & CULET_LEAF) {
            while (propagation->sets->leaves.items[leaf].id != (to & ~CULET_LEAF))
                leaf++;
            to = leaf_unit(propagation, leaf);
        }
        propagation->targets.items[first[walk->top.items[crossings->items[i].from] + 1]++] = to;
    }
    return true;
}

static void queue(struct propagation *propagation, uint32_t unit)
{
    if (!culet_bits_set(&propagation->queued, unit))
        (void)culet_numbers_add(propagation->memory, &propagation->work, unit);
}

static void propagate(struct propagation *propagation)
{
    while (propagation->work.count > 0 && !propagation->memory->failed) {
        uint32_t unit = propagation->work.items[--propagation->work.count], set = propagation->of.items[unit];
        culet_bits_clear(&propagation->queued, unit);
        if (unit > propagation->walk->tree.count)
            continue;
        for (uint32_t i = propagation->first.items[unit]; i < propagation->first.items[unit + 1]; i++) {
            uint32_t target = propagation->targets.items[i];
            uint32_t next = merged(propagation->memory, propagation->sets, propagation->of.items[target], set);
            if (next == propagation->of.items[target])
                continue;
            propagation->of.items[target] = next;
            queue(propagation, target);
        }
    }
}

static void start(struct propagation *propagation)
{
    const struct culet_holders *holders = &propagation->walk->graph->holders;

    for (uint32_t i = 0; i < holders->count; i++) {
        struct culet_holder_set alone = {{i}, 1};
        uint32_t unit = holders->items[i].number;
        if (unit == 0 || propagation->first.items[unit] == propagation->first.items[unit + 1])
            continue;
        propagation->of.items[unit] = number_of(propagation->memory, propagation->sets, &alone);
        queue(propagation, unit);
    }
}

static void keep(struct propagation *propagation)
{
    struct culet_sets *sets = propagation->sets;

    for (uint32_t i = 0; i < sets->leaves.count; i++)
        sets->leaves.items[i].set = propagation->of.items[leaf_unit(propagation, i)];
    sets->of_top = propagation->of;
    propagation->of = (struct culet_numbers){NULL, 0, {NULL, 0}};
}

bool culet_sets_make(struct culet_walk *walk, struct culet_sets *sets)
{
    struct propagation propagation = {.walk = walk, .memory = walk->memory, .sets = sets};
    const struct culet_holder_set none = {.count = 0};

    culet_crossings_sort(&walk->crossings, by_target);
    if (culet_holder_sets_add(walk->memory, &sets->sets, none) &&
        culet_holder_sets_add(walk->memory, &sets->sets, none) && list_leaves(&propagation) &&
        list_targets(&propagation)) {
        start(&propagation);
        propagate(&propagation);
        keep(&propagation);
    }
    culet_numbers_free(walk->memory, &propagation.of);
    culet_numbers_free(walk->memory, &propagation.first);
    culet_numbers_free(walk->memory, &propagation.targets);
    culet_numbers_free(walk->memory, &propagation.work);
    culet_numbers_free(walk->memory, &propagation.queued);
    return !culet_memory_exhausted(walk->memory);
}

uint32_t culet_sets_of_leaf(const struct culet_sets *sets, uint32_t id)
{
    return sets->leaves.items[CULET_FIRST_WHERE(i, 1, sets->leaves.count, sets->leaves.items[i].id > id) - 1].set;
}
