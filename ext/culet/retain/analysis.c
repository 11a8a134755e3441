#include "retain/analysis.h"

#include <string.h>

#include "reading/block_sizes.h"

#define CLOCK_EVERY 0xffff /* objects between two looks at the clock, less one */

static uint32_t holders_of(const struct culet_analysis *analysis)
{
    return (uint32_t)analysis->graph->holders.count;
}

static uint32_t group_of_set(const struct culet_analysis *analysis, uint32_t set)
{
    return holders_of(analysis) + (set == 0 ? CULET_MANY : set);
}

uint32_t culet_analysis_group_of_top(const struct culet_analysis *analysis, uint32_t top)
{
    uint32_t object = analysis->walk.objects.items[top];

    if (object & CULET_IS_HOLDER)
        return object & ~CULET_IS_HOLDER;
    return group_of_set(analysis, analysis->sets.of_top.items[top]);
}

uint32_t culet_analysis_group(const struct culet_analysis *analysis, uint32_t id)
{
    uint32_t entry = analysis->walk.entries.items[id], number = entry & CULET_NUMBER_MASK;

    if ((entry & CULET_LEAF) == 0)
        number = entry;
    else if (number == CULET_ROOT)
        return group_of_set(analysis, culet_sets_of_leaf(&analysis->sets, id));
    return culet_analysis_group_of_top(analysis, analysis->walk.top.items[number]);
}

/* ---- classes ---- */

static uint32_t hash_of(uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t hash_of_class(const void *classes, uint32_t number)
{
    return hash_of(((const struct culet_class_sums *)classes)->items[number - 1].key);
}

/* The number of a class. Returns false without memory. */
static bool class_number(struct culet_analysis *analysis, uint64_t key, uint32_t *number)
{
    uint32_t at, mask, found;

    if (!culet_table_reserve(analysis->memory, &analysis->class_table, 1, analysis->classes.count + 1, hash_of_class,
                             &analysis->classes))
        return false;
    mask = (uint32_t)analysis->class_table.count - 1;
    for (at = hash_of(key) & mask; (found = analysis->class_table.items[at]) != 0; at = (at + 1) & mask)
        if (analysis->classes.items[found - 1].key == key) {
            *number = found - 1;
            return true;
        }
    if (!culet_class_sums_add(analysis->memory, &analysis->classes, (struct culet_class_sum){key, {0, 0}}))
        return false;
    *number = (uint32_t)analysis->classes.count - 1;
    analysis->class_table.items[at] = *number + 1;
    return true;
}

static struct culet_group_class *place_of(struct culet_group_classes *table, uint64_t key)
{
    uint32_t mask = (uint32_t)table->count - 1, at = hash_of(key) & mask;

    while (table->items[at].group_class != 0 && table->items[at].group_class != key)
        at = (at + 1) & mask;
    return &table->items[at];
}

static bool grow_group_classes(struct culet_analysis *analysis)
{
    struct culet_group_classes grown = {NULL, 0, {NULL, 0}}, *before = &analysis->group_classes;
    size_t capacity = before->count == 0 ? 4096 : before->count * 2;

    if (!culet_group_classes_reserve(analysis->memory, &grown, capacity))
        return false;
    grown.count = capacity;
    for (size_t i = 0; i < before->count; i++)
        if (before->items[i].group_class != 0)
            *place_of(&grown, before->items[i].group_class) = before->items[i];
    culet_group_classes_free(analysis->memory, before);
    *before = grown;
    return true;
}

static void add_to_class(struct culet_analysis *analysis, uint32_t id, uint32_t group, uint64_t bytes)
{
    uint64_t key = analysis->graph->functions->class_of(analysis->graph, id);
    struct culet_group_class *place;
    uint32_t number;

    if (!class_number(analysis, key, &number) ||
        (analysis->group_class_count * 2 >= analysis->group_classes.count && !grow_group_classes(analysis)))
        return;
    analysis->classes.items[number].all.bytes += bytes;
    analysis->classes.items[number].all.objects++;
    place = place_of(&analysis->group_classes, (uint64_t)group << 32 | (number + 1));
    if (place->group_class == 0) {
        place->group_class = (uint64_t)group << 32 | (number + 1);
        place->first = id;
        analysis->group_class_count++;
    }
    place->all.bytes += bytes;
    place->all.objects++;
}

/* ---- sums ---- */

static void add_block(struct culet_analysis *analysis, uint64_t bytes)
{
    if (analysis->graph->block_sizes != NULL)
        analysis->objects_block_bytes += culet_block_bytes(analysis->graph->block_sizes, bytes);
}

static void add_object(struct culet_analysis *analysis, uint32_t id, uint32_t entry)
{
    uint32_t group = culet_analysis_group(analysis, id);
    uint32_t number = entry & CULET_LEAF ? entry & CULET_NUMBER_MASK : entry;
    struct culet_sizes sizes = analysis->graph->functions->sizes(analysis->graph, id);
    uint64_t beyond = sizes.malloc + sizes.elsewhere, bytes = sizes.slot + beyond;

    analysis->objects++;
    analysis->slot_bytes += sizes.slot;
    analysis->beyond_bytes += beyond;
    add_block(analysis, sizes.malloc);
    analysis->of_group.items[group].bytes += bytes;
    analysis->of_group.items[group].objects++;
    analysis->of_node.items[number].bytes += bytes;
    analysis->of_node.items[number].objects++;
    if ((entry & CULET_LEAF) && bytes >= CULET_LARGE_LEAF)
        (void)culet_numbers_add(analysis->memory, &analysis->large_leaves, id);
    add_to_class(analysis, id, group, bytes);
}

static void add_unreachable(struct culet_analysis *analysis, uint32_t id)
{
    struct culet_sizes sizes;

    if (!analysis->graph->functions->is_used(analysis->graph, id))
        return;
    sizes = analysis->graph->functions->sizes(analysis->graph, id);
    analysis->unreachable_objects++;
    analysis->unreachable_bytes += sizes.slot + sizes.malloc + sizes.elsewhere;
    add_block(analysis, sizes.malloc);
}

static void add_objects(struct culet_analysis *analysis)
{
    const uint32_t *entries = analysis->walk.entries.items;

    for (uint32_t id = 0; id < analysis->graph->ids; id++) {
        if (entries[id] != 0)
            add_object(analysis, id, entries[id]);
        else
            add_unreachable(analysis, id);
        if ((id & CLOCK_EVERY) == 0 && culet_memory_exhausted(analysis->memory))
            return;
    }
}

/* What a node dominates is added to its dominator; the root's own sum is that of all. */
static void add_up_tree(struct culet_analysis *analysis)
{
    struct culet_retained *of_node = analysis->of_node.items;

    for (uint32_t number = analysis->walk.tree.count; number > CULET_ROOT; number--) {
        struct culet_retained *above = &of_node[analysis->walk.tree.parent.items[number]];
        above->bytes += of_node[number].bytes;
        above->objects += of_node[number].objects;
    }
}

/* ---- many holders ---- */

static uint32_t set_of_target(const struct culet_analysis *analysis, uint32_t to)
{
    uint32_t set =
        to & CULET_LEAF ? culet_sets_of_leaf(&analysis->sets, to & ~CULET_LEAF) : analysis->sets.of_top.items[to];

    return set == 0 ? CULET_MANY : set;
}

static void note_many(struct culet_analysis *analysis, uint32_t holder)
{
    uint32_t least = 0;

    for (uint32_t i = 0; i < analysis->many_count; i++) {
        if (analysis->many[i] == holder)
            return;
        if (analysis->of_group.items[analysis->many[i]].bytes < analysis->of_group.items[analysis->many[least]].bytes)
            least = i;
    }
    if (analysis->many_count < CULET_SET_HOLDERS)
        analysis->many[analysis->many_count++] = holder;
    else if (analysis->of_group.items[holder].bytes > analysis->of_group.items[analysis->many[least]].bytes)
        analysis->many[least] = holder;
}

static void find_many(struct culet_analysis *analysis)
{
    const struct culet_walk *walk = &analysis->walk;

    for (size_t i = 0; i < walk->crossings.count; i++) {
        uint32_t object = walk->objects.items[walk->top.items[walk->crossings.items[i].from]];
        if ((object & CULET_IS_HOLDER) && set_of_target(analysis, walk->crossings.items[i].to) == CULET_MANY)
            note_many(analysis, object & ~CULET_IS_HOLDER);
    }
}

/* ---- */

/* What finds common dominators is not needed any more. */
static bool reserve(struct culet_analysis *analysis)
{
    size_t groups = analysis->graph->holders.count + analysis->sets.sets.count;

    culet_numbers_free(analysis->memory, &analysis->walk.tree.jump);
    culet_numbers_free(analysis->memory, &analysis->walk.tree.label);
    if (!culet_retained_list_reserve(analysis->memory, &analysis->of_node, analysis->walk.tree.count + 1) ||
        !culet_retained_list_reserve(analysis->memory, &analysis->of_group, groups) ||
        !culet_numbers_reserve(analysis->memory, &analysis->graph->wanted, analysis->graph->ids / 32 + 1))
        return false;
    analysis->of_group.count = groups;
    return true;
}

const char *culet_analysis_run(struct culet_analysis *analysis, struct culet_graph *graph)
{
    memset(analysis, 0, sizeof(*analysis));
    analysis->graph = graph;
    analysis->memory = graph->memory;
    analysis->walk.graph = graph;
    analysis->walk.memory = graph->memory;
    if (culet_walk_run(&analysis->walk) && culet_sets_make(&analysis->walk, &analysis->sets) && reserve(analysis)) {
        add_objects(analysis);
        add_up_tree(analysis);
        find_many(analysis);
    }
    return culet_memory_exhausted(analysis->memory) ? culet_memory_problem(analysis->memory) : NULL;
}

void culet_analysis_free(struct culet_analysis *analysis)
{
    culet_walk_free(&analysis->walk);
    culet_sets_free(analysis->memory, &analysis->sets);
    culet_retained_list_free(analysis->memory, &analysis->of_node);
    culet_retained_list_free(analysis->memory, &analysis->of_group);
    culet_class_sums_free(analysis->memory, &analysis->classes);
    culet_numbers_free(analysis->memory, &analysis->class_table);
    culet_group_classes_free(analysis->memory, &analysis->group_classes);
    culet_numbers_free(analysis->memory, &analysis->large_leaves);
    culet_buffer_free(&analysis->text);
    culet_buffer_free(&analysis->file);
}

const struct culet_buffer *culet_analysis_class_name(struct culet_analysis *analysis, uint64_t key)
{
    analysis->text.length = 0;
    analysis->graph->functions->write_class(analysis->graph, key, &analysis->text);
    return &analysis->text;
}

const struct culet_buffer *culet_analysis_holder_name(struct culet_analysis *analysis, uint32_t holder, long *line)
{
    struct culet_graph *graph = analysis->graph;

    analysis->text.length = analysis->file.length = 0;
    *line = 0;
    graph->functions->write_holder(graph, &graph->holders.items[holder], &analysis->text, &analysis->file, line);
    return &analysis->text;
}

bool culet_analysis_shown(const struct culet_analysis *analysis, const struct culet_numbers *ids, uint32_t group,
                          long *id)
{
    long place = ids->items[group];

    *id = group < analysis->graph->holders.count ? place - 1 : -place;
    return place != 0;
}
