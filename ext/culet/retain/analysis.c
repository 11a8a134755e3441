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

static uint32_t group_of_top(const struct culet_analysis *analysis, uint32_t top)
{
    uint32_t object = analysis->walk.objects.items[top];

    if (object & CULET_IS_HOLDER)
        return object & ~CULET_IS_HOLDER;
    return group_of_set(analysis, analysis->sets.of_top.items[top]);
}

uint32_t culet_analysis_group(const struct culet_analysis *analysis, uint32_t id)
{
    uint32_t entry = analysis->walk.entries.items[id], number = entry & CULET_NUMBER_MASK;

    if ((entry & CULET_LEAF) && number == CULET_ROOT)
        return group_of_set(analysis, culet_sets_of_leaf(&analysis->sets, id));
    return group_of_top(analysis, analysis->walk.top.items[number]);
}

/* ---- classes ---- */

static uint32_t hash_of_sum(const void *list, uint32_t number)
{
    return culet_hash(((const struct culet_class_sum_list *)list)->items[number - 1].key);
}

/* Adds an object to the sum with a key. Returns the number of the sum + 1; 0: no memory. */
static uint32_t add_to_sum(struct culet_memory *memory, struct culet_class_sums *sums, uint64_t key, uint32_t id,
                           uint64_t bytes)
{
    struct culet_class_sum_list *list = &sums->list;
    uint32_t mask, at, found;

    if (!culet_table_reserve(memory, &sums->table, 1, list->count + 1, hash_of_sum, list))
        return 0;
    mask = (uint32_t)sums->table.count - 1;
    for (at = culet_hash(key) & mask; (found = sums->table.items[at]) != 0; at = (at + 1) & mask)
        if (list->items[found - 1].key == key)
            break;
    if (found == 0) {
        if (!culet_class_sum_list_add(memory, list, (struct culet_class_sum){.key = key, .first = id}))
            return 0;
        found = sums->table.items[at] = (uint32_t)list->count;
    }
    list->items[found - 1].all.bytes += bytes;
    list->items[found - 1].all.objects++;
    return found;
}

static void add_to_class(struct culet_analysis *analysis, uint32_t id, uint32_t group, uint64_t bytes)
{
    uint64_t key = analysis->graph->functions->class_of(analysis->graph, id);
    uint32_t class = add_to_sum(analysis->memory, &analysis->classes, key, id, bytes);

    (void)add_to_sum(analysis->memory, &analysis->pairs, (uint64_t)group << 32 | class, id, bytes);
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
    uint32_t number = entry & CULET_NUMBER_MASK;
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

/* Adds the sum of each node to its dominator; the root's sum is the total. */
static void add_up_tree(struct culet_analysis *analysis)
{
    struct culet_retained *of_node = analysis->of_node.items;
    uint32_t *heaviest = analysis->heaviest.items;

    for (uint32_t number = analysis->walk.tree.count; number > CULET_ROOT; number--) {
        uint32_t above = analysis->walk.tree.parent.items[number];
        of_node[above].bytes += of_node[number].bytes;
        of_node[above].objects += of_node[number].objects;
        if (heaviest[above] == 0 || of_node[number].bytes >= of_node[heaviest[above]].bytes)
            heaviest[above] = number;
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
    struct culet_holder_set *many = &analysis->sets.sets.items[CULET_MANY];
    const struct culet_retained *of_group = analysis->of_group.items;
    uint32_t least = 0;

    for (uint32_t i = 0; i < many->count; i++) {
        if (many->holders[i] == holder)
            return;
        if (of_group[many->holders[i]].bytes < of_group[many->holders[least]].bytes)
            least = i;
    }
    if (many->count < CULET_SET_HOLDERS)
        many->holders[many->count++] = holder;
    else if (of_group[holder].bytes > of_group[many->holders[least]].bytes)
        many->holders[least] = holder;
}

/* Finds the members of the set of many: the largest of the holders that share with many others. */
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

/* Frees the index of common dominators, and reserves memory for the sums. */
static bool reserve(struct culet_analysis *analysis)
{
    size_t groups = analysis->graph->holders.count + analysis->sets.sets.count;

    culet_numbers_free(analysis->memory, &analysis->walk.tree.jump);
    culet_numbers_free(analysis->memory, &analysis->walk.tree.label);
    if (!culet_retained_list_reserve(analysis->memory, &analysis->of_node, analysis->walk.tree.count + 1) ||
        !culet_numbers_reserve(analysis->memory, &analysis->heaviest, analysis->walk.tree.count + 1) ||
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
    if (culet_walk_run(&analysis->walk, true) && culet_sets_make(&analysis->walk, &analysis->sets) &&
        reserve(analysis)) {
        add_objects(analysis);
        add_up_tree(analysis);
        find_many(analysis);
    }
    return culet_memory_exhausted(analysis->memory) ? culet_memory_problem(analysis->memory) : NULL;
}

void culet_analysis_free(struct culet_analysis *analysis)
{
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

bool culet_analysis_shown(const struct culet_analysis *analysis, const struct culet_shown *shown, uint32_t group,
                          long *id)
{
    long place = shown->places.items[group];

    *id = group < analysis->graph->holders.count ? place - 1 : -place;
    return place != 0;
}

void culet_analysis_write_groups(const struct culet_analysis *analysis, const struct culet_shown *shown,
                                 const uint32_t *groups, uint32_t count, struct culet_buffer *out)
{
    culet_buffer_text(out, "\"holders\":[");
    for (uint32_t i = 0; i < count; i++) {
        long id;
        if (!culet_analysis_shown(analysis, shown, groups[i], &id))
            continue;
        culet_buffer_comma(out);
        culet_buffer_format(out, "%ld", id);
    }
    culet_buffer_text(out, "]");
}
