#include "retain/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reader/src/base/search.h"
#include "retain/paths.h"

#define MOST_NODES 20000
#define LEAST_BYTES 4096
#define LEAST_PART 5000 /* of all bytes: 0.02 % */

struct tree_node {
    uint32_t number; /* of a node; 0: a leaf */
    uint32_t parent; /* number of the node above; CULET_ROOT: it is shared */
    uint32_t id;     /* of the object */
    uint32_t name;   /* where the name is in the texts; 0: it has none */
    uint32_t length;
    uint64_t bytes, objects;
};

CULET_LIST(tree_nodes, struct tree_node)

struct tree {
    struct culet_analysis *analysis;
    const struct culet_shown *shown;
    struct tree_nodes nodes;
    struct culet_numbers order; /* indexes of nodes, by parent */
    struct culet_buffer texts;
    struct culet_buffer *out;
};

static uint32_t group_of(const struct tree *tree, uint32_t id)
{
    return culet_analysis_group(tree->analysis, id);
}

static void add(struct tree *tree, const struct tree_node *node)
{
    if (tree->shown->places.items[group_of(tree, node->id)] != 0)
        (void)tree_nodes_add(tree->analysis->memory, &tree->nodes, *node);
}

/* All objects of at least `least` bytes, nodes in the order of the walk, so that each comes after its parent. */
static void collect(struct tree *tree, uint64_t least)
{
    const struct culet_analysis *analysis = tree->analysis;
    const struct culet_walk *walk = &analysis->walk;

    tree->nodes.count = 0;
    for (uint32_t number = CULET_ROOT + 1; number <= walk->tree.count; number++) {
        const struct culet_retained *sum = &analysis->of_node.items[number];
        if (sum->bytes >= least && !culet_walk_is_holder(walk, number))
            add(tree, &(struct tree_node){.number = number,
                                          .parent = walk->tree.parent.items[number],
                                          .id = walk->objects.items[number],
                                          .bytes = sum->bytes,
                                          .objects = sum->objects});
    }
    for (size_t i = 0; i < analysis->large_leaves.count; i++) {
        uint32_t id = analysis->large_leaves.items[i];
        uint64_t bytes = culet_graph_bytes(analysis->graph, id);
        if (bytes >= least)
            add(tree,
                &(struct tree_node){
                    .parent = walk->entries.items[id] & CULET_NUMBER_MASK, .id = id, .bytes = bytes, .objects = 1});
    }
}

static void choose(struct tree *tree)
{
    uint64_t total = tree->analysis->slot_bytes + tree->analysis->beyond_bytes;
    uint64_t least = total / LEAST_PART > LEAST_BYTES ? total / LEAST_PART : LEAST_BYTES;
    size_t room = MOST_NODES - tree->shown->holders.count - tree->shown->sets.count;

    do {
        collect(tree, least);
        least *= 2;
    } while (tree->nodes.count > room && !tree->analysis->memory->failed);
}

/* ---- names ---- */

static int by_parent(const void *one, const void *other, void *data)
{
    const struct tree_nodes *nodes = data;
    const struct tree_node *a = &nodes->items[*(const uint32_t *)one], *b = &nodes->items[*(const uint32_t *)other];

    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

struct children {
    struct tree *tree;
    size_t first, past; /* of the order */
};

static void take_name(void *data, uint32_t target, const char *name, size_t length)
{
    struct children *children = data;
    struct tree *tree = children->tree;
    size_t at =
        CULET_FIRST_WHERE(i, children->first, children->past, tree->nodes.items[tree->order.items[i]].id >= target);

    if (at < children->past) {
        struct tree_node *node = &tree->nodes.items[tree->order.items[at]];
        if (node->id != target || node->name != 0)
            return;
        node->name = (uint32_t)tree->texts.length + 1;
        node->length = (uint32_t)length;
        culet_buffer_add(&tree->texts, name, length);
    }
}

static void want_children(const struct children *children, bool wanted)
{
    struct culet_numbers *bits = &children->tree->analysis->graph->wanted;

    for (size_t i = children->first; i < children->past; i++) {
        uint32_t id = children->tree->nodes.items[children->tree->order.items[i]].id;
        if (wanted)
            (void)culet_bits_set(bits, id);
        else
            culet_bits_clear(bits, id);
    }
}

/* Asks each parent once for the names of all its children. */
static void name_all(struct tree *tree)
{
    struct culet_graph *graph = tree->analysis->graph;
    size_t first = 0;

    for (uint32_t i = 0; i < tree->nodes.count; i++)
        (void)culet_numbers_add(tree->analysis->memory, &tree->order, i);
    if (tree->order.count > 0)
        qsort_r(tree->order.items, tree->order.count, sizeof(uint32_t), by_parent, &tree->nodes);
    while (first < tree->order.count && !culet_memory_exhausted(tree->analysis->memory)) {
        uint32_t parent = tree->nodes.items[tree->order.items[first]].parent;
        struct children children = {tree, first, first};
        while (children.past < tree->order.count &&
               tree->nodes.items[tree->order.items[children.past]].parent == parent)
            children.past++;
        if (parent > CULET_ROOT && !culet_walk_is_holder(&tree->analysis->walk, parent)) {
            want_children(&children, true);
            graph->functions->named_references(graph, tree->analysis->walk.objects.items[parent], take_name, &children);
            want_children(&children, false);
        }
        first = children.past;
    }
}

/* ---- output ---- */

static void write_group(struct tree *tree, uint32_t group, size_t id)
{
    const struct culet_retained *sum = &tree->analysis->of_group.items[group];
    const struct culet_holders *holders = &tree->analysis->graph->holders;
    const struct culet_buffer *name;
    const char *kind = "set";
    long line;

    culet_buffer_format(tree->out, "%s[%zu,null,", id > 0 ? "," : "", id);
    if (group < holders->count) {
        name = culet_analysis_holder_name(tree->analysis, group, &line);
        culet_buffer_json_string(tree->out, name->bytes, name->length);
        kind = culet_holder_kind_name(holders->items[group].kind);
    } else {
        culet_buffer_text(tree->out, "\"shared\"");
    }
    culet_buffer_format(tree->out, ",\"%s\",null,0,%" PRIu64 ",%" PRIu64 "]", kind, sum->bytes, sum->objects);
}

/* The id in the tree of what is above a node. */
static size_t parent_id(const struct tree *tree, const struct tree_node *node, const struct culet_numbers *of_number)
{
    uint32_t group = group_of(tree, node->id);

    if (node->parent > CULET_ROOT && !culet_walk_is_holder(&tree->analysis->walk, node->parent))
        return of_number->items[node->parent];
    return tree->shown->places.items[group] - 1 +
           (group < tree->analysis->graph->holders.count ? 0 : tree->shown->holders.count);
}

static void write_node(struct tree *tree, const struct tree_node *node, size_t id, size_t parent)
{
    struct culet_analysis *analysis = tree->analysis;
    struct culet_graph *graph = analysis->graph;
    const struct culet_buffer *name = culet_analysis_class_name(analysis, graph->functions->class_of(graph, node->id));

    culet_buffer_format(tree->out, ",[%zu,%zu,", id, parent);
    if (node->name != 0)
        culet_buffer_json_string(tree->out, tree->texts.bytes + node->name - 1, node->length);
    else
        culet_buffer_text(tree->out, "\"\"");
    culet_buffer_text(tree->out, ",");
    culet_buffer_json_string(tree->out, name->bytes, name->length);
    culet_buffer_format(tree->out, ",\"0x%" PRIx64 "\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                        graph->functions->address(graph, node->id), culet_graph_bytes(graph, node->id), node->bytes,
                        node->objects);
}

static void write_all(struct tree *tree)
{
    struct culet_numbers of_number = {NULL, 0, {NULL, 0}};
    size_t id = 0;

    if (!culet_numbers_reserve(tree->analysis->memory, &of_number, tree->analysis->walk.tree.count + 1))
        return;
    for (size_t i = 0; i < tree->shown->holders.count; i++)
        write_group(tree, tree->shown->holders.items[i], id++);
    for (size_t i = 0; i < tree->shown->sets.count; i++)
        write_group(tree, tree->shown->sets.items[i], id++);
    for (size_t i = 0; i < tree->nodes.count; i++, id++) {
        const struct tree_node *node = &tree->nodes.items[i];
        of_number.items[node->number] = (uint32_t)id;
        write_node(tree, node, id, parent_id(tree, node, &of_number));
    }
    culet_numbers_free(tree->analysis->memory, &of_number);
}

void culet_tree_write(struct culet_analysis *analysis, const struct culet_shown *shown, struct culet_buffer *out)
{
    struct tree tree = {.analysis = analysis, .shown = shown, .out = out};

    choose(&tree);
    name_all(&tree);
    culet_buffer_text(out, ",\"tree\":[");
    write_all(&tree);
    culet_buffer_text(out, "]");
    tree_nodes_free(analysis->memory, &tree.nodes);
    culet_numbers_free(analysis->memory, &tree.order);
    culet_buffer_free(&tree.texts);
}
