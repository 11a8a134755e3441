#include "retain/walk.h"

#define CLOCK_EVERY 0xfff /* nodes between two looks at the clock, less one */
#define SEEN_CROSSINGS 65536
#define AHEAD 8 /* nodes */

struct visit {
    uint32_t id, parent; /* parent: a number */
};

CULET_LIST(visits, struct visit)

struct walker {
    struct culet_walk *walk;
    struct culet_memory *memory;
    struct visits stack;
    struct culet_numbers references; /* of the object that is visited */
    uint32_t before;                 /* number of the last node of earlier layers */
    uint32_t from;                   /* node whose references are looked at */
    struct culet_numbers again;      /* bits by number: nodes that place_leaves asks */
    int layer;
    struct culet_crossing seen[SEEN_CROSSINGS]; /* by hash: most crossings come in many copies */
};

static int leaf_layer(uint32_t entry)
{
    return (int)(entry >> CULET_LEAF_LAYER & 7);
}

/* Has the processor read what is asked for soon. */
static void fetch(const struct culet_walk *walk, uint32_t id)
{
    __builtin_prefetch(&walk->entries.items[id]);
    __builtin_prefetch((const void *)walk->graph->functions->address(walk->graph, id));
}

/* ---- the walk ---- */

static void collect(void *data, uint32_t target)
{
    struct walker *walker = data;

    (void)culet_numbers_add(walker->memory, &walker->references, target);
}

static uint32_t add_node(struct walker *walker, uint32_t parent, uint32_t object)
{
    struct culet_walk *walk = walker->walk;
    uint32_t number = culet_dominators_node(walker->memory, &walk->tree, parent);

    if (number == 0 || !culet_numbers_reserve(walker->memory, &walk->objects, number + 1) ||
        !culet_numbers_reserve(walker->memory, &walker->again, number / 32 + 1))
        return 0;
    if (number >= CULET_NUMBER_MASK) {
        walker->memory->failed = true;
        return 0;
    }
    walk->objects.items[number] = object;
    return number;
}

/* A reference to what another one has led to. */
static void see_known(struct walker *walker, uint32_t from, uint32_t entry)
{
    struct culet_dominators *tree = &walker->walk->tree;

    if (entry & CULET_LEAF) {
        if ((entry & CULET_NUMBER_MASK) != from && leaf_layer(entry) == walker->layer)
            (void)culet_bits_set(&walker->again, from);
    } else if (entry > walker->before) {
        (void)culet_bits_set(&walker->again, from);
        (void)culet_bits_set(&walker->again, tree->parent.items[entry]);
        culet_dominators_edge(walker->memory, tree, from, entry);
    }
}

static uint32_t new_leaf(const struct walker *walker, uint32_t from)
{
    return CULET_LEAF | (uint32_t)walker->layer << CULET_LEAF_LAYER | from;
}

static void see(struct walker *walker, uint32_t from, uint32_t id)
{
    struct culet_graph *graph = walker->walk->graph;
    uint32_t *entry = &walker->walk->entries.items[id];

    if (*entry != 0)
        see_known(walker, from, *entry);
    else if (graph->functions->is_leaf(graph, id))
        *entry = new_leaf(walker, from);
    else
        (void)visits_add(walker->memory, &walker->stack, (struct visit){id, from});
}

static void visit(struct walker *walker, struct visit one)
{
    struct culet_graph *graph = walker->walk->graph;
    uint32_t *entry = &walker->walk->entries.items[one.id], number;

    if (*entry != 0) {
        see_known(walker, one.parent, *entry);
        return;
    }
    walker->references.count = 0;
    graph->functions->references(graph, one.id, walker->layer, collect, walker);
    if (walker->references.count == 0) {
        *entry = new_leaf(walker, one.parent);
        return;
    }
    number = add_node(walker, one.parent, one.id);
    if (number == 0)
        return;
    *entry = number;
    for (size_t i = 0; i < walker->references.count; i++)
        see(walker, number, walker->references.items[i]);
}

static void walk_holder(struct walker *walker, uint32_t index)
{
    struct culet_graph *graph = walker->walk->graph;
    struct culet_holder holder = graph->holders.items[index];
    uint32_t number = add_node(walker, CULET_ROOT, CULET_IS_HOLDER | index);

    if (number == 0)
        return;
    graph->holders.items[index].number = number;
    for (size_t i = 0; i < holder.targets; i++)
        see(walker, number, graph->targets.items[holder.first + i]);
    for (uint32_t steps = 0; walker->stack.count > 0; steps++) {
        if (walker->memory->failed || ((steps & CLOCK_EVERY) == 0 && culet_memory_exhausted(walker->memory)))
            return;
        visit(walker, walker->stack.items[--walker->stack.count]);
        if (walker->stack.count > AHEAD)
            fetch(walker->walk, walker->stack.items[walker->stack.count - AHEAD].id);
    }
}

static void walk_layer(struct walker *walker, int layer)
{
    struct culet_graph *graph = walker->walk->graph;
    size_t at = 0;

    graph->layer = walker->layer = layer;
    walker->before = walker->walk->tree.count;
    do
        for (; at < graph->queues[layer].count && !culet_memory_exhausted(walker->memory); at++)
            walk_holder(walker, graph->queues[layer].items[at]);
    while (!culet_memory_exhausted(walker->memory) && graph->functions->more_holders(graph));
    walker->walk->layer_end[layer] = walker->walk->tree.count;
}

static void walk_all(struct walker *walker)
{
    struct culet_walk *walk = walker->walk;

    if (!culet_numbers_reserve(walker->memory, &walk->entries, walk->graph->ids) || add_node(walker, 0, 0) == 0)
        return;
    for (int layer = 0; layer < CULET_LAYERS; layer++)
        walk_layer(walker, layer);
    walk->graph->layer = CULET_LAYERS;
    visits_free(walker->memory, &walker->stack);
    culet_numbers_free(walker->memory, &walker->references);
}

/* ---- leaves and crossings ---- */

static void find_tops(struct culet_walk *walk)
{
    uint32_t *top = walk->top.items;

    for (uint32_t number = CULET_ROOT + 1; number <= walk->tree.count; number++) {
        uint32_t dominator = walk->tree.parent.items[number];
        top[number] = dominator == CULET_ROOT ? number : top[dominator];
    }
}

static void add_crossing(struct walker *walker, uint32_t from, uint32_t to)
{
    uint32_t top = walker->walk->top.items[from];
    uint64_t hash = ((uint64_t)top << 32 | to) * UINT64_C(0x9e3779b97f4a7c15);
    struct culet_crossing *seen = &walker->seen[hash >> 48];

    if (seen->from == top && seen->to == to)
        return;
    *seen = (struct culet_crossing){top, to};
    (void)culet_crossings_add(walker->memory, &walker->walk->crossings, (struct culet_crossing){from, to});
}

/* Of a leaf that the root dominates all references count as crossings. */
static void see_leaf(struct walker *walker, uint32_t id)
{
    struct culet_walk *walk = walker->walk;
    uint32_t *entry = &walk->entries.items[id], dominator = *entry & CULET_NUMBER_MASK, common;

    if (leaf_layer(*entry) < walker->layer)
        return;
    if (dominator == CULET_ROOT) {
        add_crossing(walker, walker->from, CULET_LEAF | id);
        return;
    }
    common = culet_dominators_common(&walk->tree, dominator, walker->from);
    if (common == CULET_ROOT) {
        add_crossing(walker, dominator, CULET_LEAF | id);
        add_crossing(walker, walker->from, CULET_LEAF | id);
    }
    *entry = (*entry & ~CULET_NUMBER_MASK) | common;
}

static void see_again(void *data, uint32_t target)
{
    struct walker *walker = data;
    const struct culet_walk *walk = walker->walk;
    uint32_t entry = walk->entries.items[target];

    if (entry & CULET_LEAF)
        see_leaf(walker, target);
    else if (entry > walker->before && walk->top.items[entry] != walk->top.items[walker->from])
        add_crossing(walker, walker->from, entry);
}

static void see_holder_again(struct walker *walker, const struct culet_holder *holder)
{
    for (size_t i = 0; i < holder->targets; i++)
        see_again(walker, walker->walk->graph->targets.items[holder->first + i]);
}

static bool is_asked_again(const struct walker *walker, uint32_t number)
{
    return number <= walker->walk->tree.count && culet_bits_has(&walker->again, number);
}

/* A leaf that several nodes refer to, and a crossing, are found by asking these nodes for their references once more,
 * which costs less than to store them. All other leaves have the dominator that the walk noted. */
static void place_leaves(struct walker *walker)
{
    struct culet_walk *walk = walker->walk;
    struct culet_graph *graph = walk->graph;

    walker->layer = 0;
    walker->before = CULET_ROOT;
    for (uint32_t number = CULET_ROOT + 1; number <= walk->tree.count; number++) {
        uint32_t object = walk->objects.items[number];
        while (number > walk->layer_end[walker->layer])
            walker->before = walk->layer_end[walker->layer++];
        if ((number & CLOCK_EVERY) == 0 && culet_memory_exhausted(walker->memory))
            return;
        if (is_asked_again(walker, number + AHEAD) && !culet_walk_is_holder(walk, number + AHEAD))
            fetch(walk, walk->objects.items[number + AHEAD]);
        if (!is_asked_again(walker, number))
            continue;
        walker->from = number;
        if (object & CULET_IS_HOLDER)
            see_holder_again(walker, &graph->holders.items[object & ~CULET_IS_HOLDER]);
        else
            graph->functions->references(graph, object, walker->layer, see_again, walker);
    }
}

static void make_tree(struct walker *walker)
{
    struct culet_walk *walk = walker->walk;

    if (!culet_dominators_make(walk->memory, &walk->tree))
        return;
    culet_numbers_free(walk->memory, &walk->tree.semi);
    if (culet_numbers_reserve(walk->memory, &walk->top, walk->tree.count + 1)) {
        find_tops(walk);
        place_leaves(walker);
    }
}

bool culet_walk_run(struct culet_walk *walk, bool with_tree)
{
    struct walker *walker;
    struct culet_array room = {NULL, 0};

    if (!culet_array_reserve(walk->memory, &room, 1, sizeof(*walker)))
        return false;
    walker = room.items;
    walker->walk = walk;
    walker->memory = walk->memory;
    walk_all(walker);
    if (with_tree && !culet_memory_exhausted(walk->memory))
        make_tree(walker);
    culet_numbers_free(walk->memory, &walker->again);
    culet_array_free(walk->memory, &room);
    return !culet_memory_exhausted(walk->memory);
}

int culet_walk_layer(const struct culet_walk *walk, uint32_t number)
{
    int layer = 0;

    while (layer < CULET_LAYERS - 1 && number > walk->layer_end[layer])
        layer++;
    return layer;
}
