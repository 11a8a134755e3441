#include "retain/dominators.h"

#include <string.h>

#define CLOCK_EVERY 0xffff /* nodes between two looks at the clock, less one */

uint32_t culet_dominators_node(struct culet_memory *memory, struct culet_dominators *tree, uint32_t parent)
{
    uint32_t number = tree->count + 1;

    if (!culet_numbers_reserve(memory, &tree->parent, number + 1) ||
        !culet_numbers_reserve(memory, &tree->semi, number + 1) ||
        !culet_numbers_reserve(memory, &tree->label, number + 1))
        return 0;
    tree->count = number;
    tree->parent.items[number] = parent;
    tree->semi.items[number] = parent;
    return number;
}

void culet_dominators_edge(struct culet_memory *memory, struct culet_dominators *tree, uint32_t from, uint32_t to)
{
    if (from < to && from < tree->semi.items[to])
        tree->semi.items[to] = from;
    if (from <= to)
        return;
    if (tree->back.count == 0)
        (void)culet_back_edges_add(memory, &tree->back, (struct culet_back_edge){0, 0});
    if (tree->back.count > UINT32_MAX)
        memory->failed = true;
    else if (culet_back_edges_add(memory, &tree->back, (struct culet_back_edge){from, tree->label.items[to]}))
        tree->label.items[to] = (uint32_t)tree->back.count - 1;
}

/* ---- semidominators ---- */

struct forest {
    struct culet_dominators *tree;
    uint32_t *ancestor; /* with compressed paths */
    struct culet_numbers path;
};

/* The node of the least semidominator between a node and the first of its ancestors that is not linked. */
static uint32_t evaluate(struct culet_memory *memory, struct forest *forest, uint32_t node, uint32_t last_linked)
{
    uint32_t *ancestor = forest->ancestor, *label = forest->tree->label.items;
    const uint32_t *semi = forest->tree->semi.items;
    uint32_t above, least;

    if (ancestor[node] < last_linked)
        return label[node];
    forest->path.count = 0;
    do {
        if (!culet_numbers_add(memory, &forest->path, node))
            return label[node];
        node = ancestor[node];
    } while (ancestor[node] >= last_linked);
    above = node;
    least = label[above];
    do {
        node = forest->path.items[--forest->path.count];
        ancestor[node] = ancestor[above];
        if (semi[least] < semi[label[node]])
            label[node] = least;
        else
            least = label[node];
        above = node;
    } while (forest->path.count > 0);
    return label[node];
}

/* Until a node is linked, its label is its list of edges from later nodes. */
static void find_semidominators(struct culet_memory *memory, struct forest *forest)
{
    struct culet_dominators *tree = forest->tree;
    uint32_t *semi = tree->semi.items, *label = tree->label.items;

    for (uint32_t node = tree->count; node > CULET_ROOT; node--) {
        uint32_t edge = label[node], least = semi[node];
        for (; edge != 0; edge = tree->back.items[edge].next) {
            uint32_t through = evaluate(memory, forest, tree->back.items[edge].from, node + 1);
            if (semi[through] < least)
                least = semi[through];
        }
        semi[node] = least;
        label[node] = node;
        if ((node & CLOCK_EVERY) == 0 && culet_memory_exhausted(memory))
            return;
    }
}

/* ---- the tree ---- */

/* Skew-binary jumps, after Myers, "An applicative random-access stack", 1983: any ancestor in logarithmic time. */
static void place(struct culet_dominators *tree, uint32_t node, uint32_t dominator)
{
    uint32_t *depth = tree->label.items, *jump = tree->jump.items, above = jump[dominator];

    tree->parent.items[node] = dominator;
    depth[node] = depth[dominator] + 1;
    jump[node] = depth[dominator] - depth[above] == depth[above] - depth[jump[above]] ? jump[above] : dominator;
}

/* The nearest dominator of a node, or itself, that is not after `last`. */
static uint32_t not_after(const struct culet_dominators *tree, uint32_t node, uint32_t last)
{
    while (node > last)
        node = tree->jump.items[node] > last ? tree->jump.items[node] : tree->parent.items[node];
    return node;
}

static void place_all(struct culet_dominators *tree)
{
    tree->label.items[CULET_ROOT] = 0;
    tree->jump.items[CULET_ROOT] = CULET_ROOT;
    tree->parent.items[CULET_ROOT] = CULET_ROOT;
    for (uint32_t node = CULET_ROOT + 1; node <= tree->count; node++)
        place(tree, node, not_after(tree, tree->parent.items[node], tree->semi.items[node]));
}

bool culet_dominators_make(struct culet_memory *memory, struct culet_dominators *tree)
{
    struct forest forest = {.tree = tree};

    if (!culet_numbers_reserve(memory, &tree->jump, tree->count + 1))
        return false;
    memcpy(tree->jump.items, tree->parent.items, (tree->count + 1) * sizeof(uint32_t));
    forest.ancestor = tree->jump.items;
    find_semidominators(memory, &forest);
    culet_numbers_free(memory, &forest.path);
    culet_back_edges_free(memory, &tree->back);
    if (culet_memory_exhausted(memory))
        return false;
    place_all(tree);
    return true;
}

uint32_t culet_dominators_common(const struct culet_dominators *tree, uint32_t one, uint32_t other)
{
    const uint32_t *depth = tree->label.items, *jump = tree->jump.items, *dominator = tree->parent.items;

    if (depth[one] < depth[other]) {
        uint32_t deeper = other;
        other = one;
        one = deeper;
    }
    while (depth[one] > depth[other])
        one = depth[jump[one]] >= depth[other] ? jump[one] : dominator[one];
    while (one != other) {
        int jumps = jump[one] != jump[other];
        one = jumps ? jump[one] : dominator[one];
        other = jumps ? jump[other] : dominator[other];
    }
    return one;
}
