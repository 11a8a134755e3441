#include "retain/paths.h"

#include <inttypes.h>
#include <string.h>

#include "reader/src/base/search.h"

#define MOST_STEPS 64 /* of a path; further ones are left out in the middle */
#define HEAVIEST_STEPS 12
#define MOST_VISITS 200000 /* of shared nodes, on the way back to a holder */
#define UNNAMED "(several references)"

/* ---- names ---- */

struct name_search {
    uint32_t id;
    struct culet_buffer *text;
    bool found;
};

/* The first name counts: those of variables and keys come before those of other references. */
static void take_name(void *data, uint32_t target, const char *name, size_t length)
{
    struct name_search *search = data;

    if (target != search->id || search->found)
        return;
    search->found = true;
    culet_buffer_add(search->text, name, length);
}

void culet_paths_write_object(struct culet_analysis *analysis, uint32_t id, struct culet_buffer *out)
{
    struct culet_graph *graph = analysis->graph;
    const struct culet_buffer *name = culet_analysis_class_name(analysis, graph->functions->class_of(graph, id));

    culet_buffer_text(out, "\"class\":");
    culet_buffer_json_string(out, name->bytes, name->length);
    culet_buffer_format(out, ",\"address\":\"0x%" PRIx64 "\"", graph->functions->address(graph, id));
}

/* Writes one step, but for its end: the reference from a node to an object. */
static void write_step(struct culet_analysis *analysis, uint32_t from, uint32_t id, struct culet_buffer *out)
{
    struct culet_graph *graph = analysis->graph;
    struct culet_buffer *text = &analysis->text;
    struct name_search search = {id, text, false};
    uint32_t object = analysis->walk.objects.items[from];
    long line;

    text->length = 0;
    if (object & CULET_IS_HOLDER) {
        (void)culet_analysis_holder_name(analysis, object & ~CULET_IS_HOLDER, &line);
    } else {
        (void)culet_bits_set(&graph->wanted, id);
        graph->functions->named_references(graph, object, take_name, &search);
        culet_bits_clear(&graph->wanted, id);
        if (!search.found)
            culet_buffer_text(text, UNNAMED);
    }
    culet_buffer_comma(out);
    culet_buffer_text(out, "{\"edge\":");
    culet_buffer_json_string(out, text->bytes, text->length);
    culet_buffer_text(out, ",");
    culet_paths_write_object(analysis, id, out);
}

/* ---- the heaviest ---- */

struct heaviest {
    struct culet_analysis *analysis;
    uint32_t from;
    uint32_t id;
    uint64_t bytes;
};

static void weigh_leaf(void *data, uint32_t target)
{
    struct heaviest *heaviest = data;
    struct culet_analysis *analysis = heaviest->analysis;
    uint32_t entry = analysis->walk.entries.items[target];
    uint64_t bytes;

    if ((entry & CULET_LEAF) == 0 || (entry & CULET_NUMBER_MASK) != heaviest->from)
        return;
    bytes = culet_graph_bytes(analysis->graph, target);
    if (bytes > heaviest->bytes) {
        heaviest->bytes = bytes;
        heaviest->id = target;
    }
}

/* Of what a node dominates at once, whether it refers to it or only objects below it do. */
static bool find_heaviest(struct heaviest *heaviest)
{
    struct culet_analysis *analysis = heaviest->analysis;
    struct culet_walk *walk = &analysis->walk;
    struct culet_graph *graph = walk->graph;
    uint32_t object = walk->objects.items[heaviest->from], node = analysis->heaviest.items[heaviest->from];

    heaviest->id = walk->objects.items[node];
    heaviest->bytes = node != 0 ? analysis->of_node.items[node].bytes : 0;
    if (object & CULET_IS_HOLDER) {
        const struct culet_holder *holder = &graph->holders.items[object & ~CULET_IS_HOLDER];
        for (size_t i = 0; i < holder->targets; i++)
            weigh_leaf(heaviest, graph->targets.items[holder->first + i]);
        if (heaviest->bytes == 0 && holder->targets > 0) { /* it shares all that it has */
            heaviest->id = graph->targets.items[holder->first];
            return true;
        }
    } else {
        graph->functions->references(graph, object, culet_walk_layer(walk, heaviest->from), weigh_leaf, heaviest);
    }
    return heaviest->bytes > 0;
}

void culet_paths_write_heaviest(struct culet_analysis *analysis, uint32_t holder, struct culet_buffer *out)
{
    struct heaviest heaviest = {.analysis = analysis, .from = analysis->graph->holders.items[holder].number};

    culet_buffer_text(out, "[");
    for (int step = 0; step < HEAVIEST_STEPS && find_heaviest(&heaviest); step++) {
        uint32_t entry = analysis->walk.entries.items[heaviest.id];
        write_step(analysis, heaviest.from, heaviest.id, out);
        culet_buffer_format(out, ",\"bytes\":%" PRIu64 "}", heaviest.bytes);
        if (entry == 0 || (entry & CULET_LEAF) || analysis->walk.tree.parent.items[entry] != heaviest.from)
            break;
        heaviest.from = entry;
    }
    culet_buffer_text(out, "]");
}

/* ---- to an object ---- */

/* A way from a holder: nodes of the tree, and crossings between them. */
struct step {
    uint32_t from; /* number of a node */
    uint32_t id;
};

CULET_LIST(steps, struct step)

/* Adds the steps from the node below the root to a node. */
static void add_chain(struct culet_analysis *analysis, struct steps *steps, uint32_t number)
{
    const struct culet_walk *walk = &analysis->walk;
    size_t first = steps->count;
    uint32_t above;

    for (; (above = walk->tree.parent.items[number]) != CULET_ROOT; number = above)
        (void)steps_add(analysis->memory, steps, (struct step){above, walk->objects.items[number]});
    for (size_t last = steps->count; first + 1 < last; first++) {
        struct step step = steps->items[first];
        steps->items[first] = steps->items[--last];
        steps->items[last] = step;
    }
}

static void write_steps(struct culet_analysis *analysis, const struct steps *steps, struct culet_buffer *out)
{
    culet_buffer_comma(out);
    culet_buffer_text(out, "[");
    for (size_t i = 0; i < steps->count; i++) {
        if (i >= MOST_STEPS / 2 && i + MOST_STEPS / 2 < steps->count)
            continue;
        write_step(analysis, steps->items[i].from, steps->items[i].id, out);
        culet_buffer_text(out, "}");
    }
    culet_buffer_text(out, "]");
}

/* A node below the root that was met on the way back, and the crossing that led on from it. */
struct met {
    uint32_t to;       /* as in a crossing */
    uint32_t via;      /* index of `met` that it leads to */
    uint32_t crossing; /* from it */
};

CULET_LIST(mets, struct met)

struct way_back {
    struct culet_analysis *analysis;
    struct mets mets;
    struct culet_numbers seen; /* bits by number */
    struct culet_numbers holders;
    int most;
    struct culet_buffer *out;
    const struct steps *tail; /* from the shared object on */
};

static uint32_t id_of_target(const struct culet_walk *walk, uint32_t to)
{
    return to & CULET_LEAF ? to & ~CULET_LEAF : walk->objects.items[to];
}

/* Writes the path that begins with a crossing from a holder and leads on by what was met. */
static void write_way(struct way_back *way, size_t crossing, uint32_t via)
{
    struct culet_analysis *analysis = way->analysis;
    const struct culet_walk *walk = &analysis->walk;
    struct steps steps = {NULL, 0, {NULL, 0}};

    for (;;) {
        const struct culet_crossing *one = &walk->crossings.items[crossing];
        add_chain(analysis, &steps, one->from);
        (void)steps_add(analysis->memory, &steps, (struct step){one->from, id_of_target(walk, one->to)});
        if (via == 0)
            break;
        crossing = way->mets.items[via].crossing;
        via = way->mets.items[via].via;
    }
    for (size_t i = 0; i < way->tail->count; i++)
        (void)steps_add(analysis->memory, &steps, way->tail->items[i]);
    write_steps(analysis, &steps, way->out);
    steps_free(analysis->memory, &steps);
}

static bool is_new_holder(struct way_back *way, uint32_t holder)
{
    for (size_t i = 0; i < way->holders.count; i++)
        if (way->holders.items[i] == holder)
            return false;
    return culet_numbers_add(way->analysis->memory, &way->holders, holder);
}

static void go_back(struct way_back *way, uint32_t at)
{
    const struct culet_walk *walk = &way->analysis->walk;
    uint32_t to = way->mets.items[at].to;

    /* Crossings are sorted by target. */
    for (size_t i = CULET_FIRST_WHERE(n, 0, walk->crossings.count, walk->crossings.items[n].to >= to);
         i < walk->crossings.count && walk->crossings.items[i].to == to && (int)way->holders.count < way->most; i++) {
        uint32_t top = walk->top.items[walk->crossings.items[i].from], object = walk->objects.items[top];
        if (object & CULET_IS_HOLDER) {
            if (is_new_holder(way, object & ~CULET_IS_HOLDER))
                write_way(way, i, at);
        } else if (!culet_bits_set(&way->seen, top)) {
            (void)mets_add(way->analysis->memory, &way->mets, (struct met){top, at, (uint32_t)i});
        }
    }
}

/* From a shared node or leaf back to its holders, nearest first. */
static void write_ways_back(struct culet_analysis *analysis, uint32_t to, const struct steps *tail, int most,
                            struct culet_buffer *out)
{
    struct way_back way = {.analysis = analysis, .most = most, .out = out, .tail = tail};

    if (culet_numbers_reserve(analysis->memory, &way.seen, analysis->walk.tree.count / 32 + 1) &&
        mets_add(analysis->memory, &way.mets, (struct met){to, 0, 0}))
        for (uint32_t at = 0; at < way.mets.count && at < MOST_VISITS && (int)way.holders.count < most; at++)
            go_back(&way, at);
    mets_free(analysis->memory, &way.mets);
    culet_numbers_free(analysis->memory, &way.seen);
    culet_numbers_free(analysis->memory, &way.holders);
}

void culet_paths_write_to(struct culet_analysis *analysis, uint32_t id, int most, struct culet_buffer *out)
{
    const struct culet_walk *walk = &analysis->walk;
    uint32_t entry = walk->entries.items[id], number = entry & CULET_NUMBER_MASK, top;
    struct steps steps = {NULL, 0, {NULL, 0}};

    if ((entry & CULET_LEAF) && number == CULET_ROOT) {
        write_ways_back(analysis, CULET_LEAF | id, &steps, most, out);
    } else if (number != 0) {
        add_chain(analysis, &steps, number);
        if (entry & CULET_LEAF)
            (void)steps_add(analysis->memory, &steps, (struct step){number, id});
        top = walk->top.items[number];
        if (culet_walk_is_holder(walk, top))
            write_steps(analysis, &steps, out);
        else
            write_ways_back(analysis, top, &steps, most, out);
    }
    steps_free(analysis->memory, &steps);
}
