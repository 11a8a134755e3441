#include "retain/graph.h"

void culet_graph_add_holder(struct culet_graph *graph, enum culet_holder_kind kind, enum culet_layer layer,
                            uint64_t object, uint64_t name)
{
    struct culet_holder holder = {.kind = (uint8_t)kind, .object = object, .name = name, .first = graph->targets.count};

    holder.layer = (uint8_t)((int)layer > graph->layer ? (int)layer : graph->layer);
    if (!culet_holders_add(graph->memory, &graph->holders, holder))
        return;
    (void)culet_numbers_add(graph->memory, &graph->queues[holder.layer], (uint32_t)graph->holders.count - 1);
}

void culet_graph_add_target(struct culet_graph *graph, uint32_t target)
{
    if (!graph->memory->failed && culet_numbers_add(graph->memory, &graph->targets, target))
        graph->holders.items[graph->holders.count - 1].targets++;
}

void culet_graph_add_single(struct culet_graph *graph, enum culet_holder_kind kind, enum culet_layer layer,
                            uint64_t object, uint64_t name, uint32_t target)
{
    culet_graph_add_holder(graph, kind, layer, object, name);
    culet_graph_add_target(graph, target);
}

const char *culet_holder_kind_name(int kind)
{
    static const char *const names[] = {
        "constant",     "class_variable", "global", "thread_local", "fiber_local", "closure", "instance_variable",
        "symbol_table", "finalizer",      "native", "stack",        "method",      "vm",      "other"};

    return names[kind];
}
