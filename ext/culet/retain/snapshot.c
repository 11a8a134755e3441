/* Nodes are the root, the holders that were walked, and all reachable objects by their ids. Objects are asked for their
 * references twice: V8's format has the number of each node's edges before all edges. */
#include "retain/snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "common/io.h"
#include "profile/texts.h"

#define BLOCK_BYTES 65536
#define NODE_FIELDS 7
#define MOST_NAMED 256     /* references of an object that get their names; those of larger ones are numbered */
#define MOST_TEXTS 1000000 /* different names; further ones are "...", as are those that have no room */
#define MOST_TEXT_BYTES ((size_t)64 << 20)
#define OTHER_TEXT 1
#define CLOCK_EVERY 0xffff

enum node_type {
    NODE_ARRAY = 1,
    NODE_STRING = 2,
    NODE_OBJECT = 3,
    NODE_CODE = 4,
    NODE_CLOSURE = 5,
    NODE_SYNTHETIC = 9
};
enum edge_type { EDGE_ELEMENT = 1, EDGE_PROPERTY = 2 };

struct name {
    uint32_t id, text;
};

struct snapshot {
    struct culet_analysis *analysis;
    struct culet_texts texts;      /* of nodes and edges */
    struct culet_numbers position; /* by id: number of its node */
    struct name names[MOST_NAMED]; /* of the references of one object */
    size_t name_count;
    uint64_t nodes, edges;
    uint32_t counted; /* edges of one object */
    int fd, failed;
    struct culet_buffer out; /* not written yet */
};

/* ---- output ---- */

static void flush(struct snapshot *snapshot)
{
    snapshot->failed |= snapshot->out.failed;
    if (!snapshot->failed && culet_write_all(snapshot->fd, snapshot->out.bytes, snapshot->out.length) != 0)
        snapshot->failed = 1;
    snapshot->out.length = 0;
}

/* Of a list. */
static void begin_item(struct snapshot *snapshot)
{
    culet_buffer_comma(&snapshot->out);
    if (snapshot->out.length >= BLOCK_BYTES)
        flush(snapshot);
}

/* ---- texts ---- */

/* The number of a text in the list of strings. */
static uint32_t text_of(struct snapshot *snapshot, const char *bytes, size_t length)
{
    uint32_t number = culet_texts_add(&snapshot->texts, bytes, length, MOST_TEXTS);

    return number != 0 ? number - 1 : OTHER_TEXT;
}

static void write_texts(struct snapshot *snapshot)
{
    culet_buffer_text(&snapshot->out, "\"strings\":[");
    for (uint32_t number = 1; number <= snapshot->texts.count; number++) {
        size_t length;
        const char *text = culet_texts_get(&snapshot->texts, number, &length);
        begin_item(snapshot);
        culet_buffer_json_string(&snapshot->out, text, length);
    }
    culet_buffer_text(&snapshot->out, "]}\n");
}

/* ---- nodes ---- */

static void count_edge(void *data, uint32_t target)
{
    struct snapshot *snapshot = data;

    snapshot->counted += snapshot->analysis->walk.entries.items[target] != 0;
}

static uint32_t edges_of(struct snapshot *snapshot, uint32_t id)
{
    struct culet_analysis *analysis = snapshot->analysis;
    uint32_t entry = analysis->walk.entries.items[id];

    snapshot->counted = 0;
    if ((entry & CULET_LEAF) == 0)
        analysis->graph->functions->references(analysis->graph, id, culet_walk_layer(&analysis->walk, entry),
                                               count_edge, snapshot);
    return snapshot->counted;
}

/* Ruby notes names with the classes that have them, so the first time that one is asked for changes references. */
static void ask_names(struct snapshot *snapshot)
{
    long line;

    for (uint32_t i = 0; i < snapshot->analysis->graph->holders.count; i++)
        (void)culet_analysis_holder_name(snapshot->analysis, i, &line);
}

/* Numbers the nodes, and counts the edges. */
static bool count(struct snapshot *snapshot)
{
    struct culet_analysis *analysis = snapshot->analysis;

    ask_names(snapshot);
    if (!culet_numbers_reserve(analysis->memory, &snapshot->position, analysis->graph->ids))
        return false;
    snapshot->edges = analysis->graph->holders.count;
    snapshot->nodes = 1 + snapshot->edges;
    for (size_t i = 0; i < analysis->graph->holders.count; i++)
        snapshot->edges += analysis->graph->holders.items[i].targets;
    for (uint32_t id = 0; id < analysis->graph->ids; id++) {
        if (analysis->walk.entries.items[id] == 0)
            continue;
        snapshot->position.items[id] = (uint32_t)snapshot->nodes++;
        snapshot->edges += edges_of(snapshot, id);
        if ((id & CLOCK_EVERY) == 0 && culet_memory_exhausted(analysis->memory))
            return false;
    }
    return true;
}

static void write_node(struct snapshot *snapshot, enum node_type type, uint32_t text, uint32_t number, uint64_t bytes,
                       uint64_t edges)
{
    begin_item(snapshot);
    culet_buffer_format(&snapshot->out, "%d,%u,%u,%" PRIu64 ",%" PRIu64 ",0,0\n", type, text, number * 2 + 1, bytes,
                        edges);
}

static void write_holder_node(struct snapshot *snapshot, uint32_t index)
{
    struct culet_graph *graph = snapshot->analysis->graph;
    const struct culet_holder *holder = &graph->holders.items[index];
    struct culet_buffer *text = &snapshot->analysis->text;
    long line;

    text->length = snapshot->analysis->file.length = 0;
    culet_buffer_format(text, "(%s) ", culet_holder_kind_name(holder->kind));
    graph->functions->write_holder(graph, holder, text, &snapshot->analysis->file, &line);
    write_node(snapshot, NODE_SYNTHETIC, text_of(snapshot, text->bytes, text->length), index + 1, 0, holder->targets);
}

static enum node_type type_of(const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum node_type type;
    } types[] = {
        {"Array", NODE_ARRAY}, {"String", NODE_STRING}, {"Proc", NODE_CLOSURE}, {"(internal iseq)", NODE_CODE}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0)
            return types[i].type;
    return NODE_OBJECT;
}

static void write_object_node(struct snapshot *snapshot, uint32_t id)
{
    struct culet_graph *graph = snapshot->analysis->graph;
    const struct culet_buffer *name =
        culet_analysis_class_name(snapshot->analysis, graph->functions->class_of(graph, id));
    size_t length;
    const char *content = graph->show_contents ? graph->functions->content(graph, id, &length) : NULL;
    enum node_type type = type_of(name->bytes, name->length);
    uint32_t text = type == NODE_STRING && content != NULL ? text_of(snapshot, content, length < 100 ? length : 100)
                                                           : text_of(snapshot, name->bytes, name->length);

    write_node(snapshot, type, text, snapshot->position.items[id], culet_graph_bytes(graph, id),
               edges_of(snapshot, id));
}

static void write_nodes(struct snapshot *snapshot)
{
    struct culet_analysis *analysis = snapshot->analysis;

    culet_buffer_text(&snapshot->out, "\"nodes\":[");
    write_node(snapshot, NODE_SYNTHETIC, 0, 0, 0, analysis->graph->holders.count);
    for (uint32_t i = 0; i < analysis->graph->holders.count; i++)
        write_holder_node(snapshot, i);
    for (uint32_t id = 0; id < analysis->graph->ids && !snapshot->failed; id++) {
        if (analysis->walk.entries.items[id] != 0)
            write_object_node(snapshot, id);
        if ((id & CLOCK_EVERY) == 0 && culet_memory_exhausted(analysis->memory))
            return;
    }
    culet_buffer_text(&snapshot->out, "],\n");
}

/* ---- edges ---- */

static void write_edge(struct snapshot *snapshot, enum edge_type type, uint32_t name_or_index, uint32_t node)
{
    begin_item(snapshot);
    culet_buffer_format(&snapshot->out, "%d,%u,%" PRIu64 "\n", type, name_or_index, (uint64_t)node * NODE_FIELDS);
}

static void note_name(void *data, uint32_t target, const char *name, size_t length)
{
    struct snapshot *snapshot = data;

    for (size_t i = 0; i < snapshot->name_count; i++)
        if (snapshot->names[i].id == target)
            return;
    if (snapshot->name_count < MOST_NAMED)
        snapshot->names[snapshot->name_count++] = (struct name){target, text_of(snapshot, name, length)};
}

static void write_reference(void *data, uint32_t target)
{
    struct snapshot *snapshot = data;

    if (snapshot->analysis->walk.entries.items[target] == 0)
        return;
    for (size_t i = 0; i < snapshot->name_count; i++)
        if (snapshot->names[i].id == target) {
            write_edge(snapshot, EDGE_PROPERTY, snapshot->names[i].text, snapshot->position.items[target]);
            return;
        }
    write_edge(snapshot, EDGE_ELEMENT, snapshot->counted++, snapshot->position.items[target]);
}

static void write_edges_of(struct snapshot *snapshot, uint32_t id)
{
    struct culet_analysis *analysis = snapshot->analysis;
    uint32_t entry = analysis->walk.entries.items[id];

    if (entry & CULET_LEAF)
        return;
    snapshot->name_count = 0;
    if (edges_of(snapshot, id) <= MOST_NAMED)
        analysis->graph->functions->named_references(analysis->graph, id, note_name, snapshot);
    snapshot->counted = 0;
    analysis->graph->functions->references(analysis->graph, id, culet_walk_layer(&analysis->walk, entry),
                                           write_reference, snapshot);
}

static void write_edges(struct snapshot *snapshot)
{
    struct culet_analysis *analysis = snapshot->analysis;
    const struct culet_graph *graph = analysis->graph;

    culet_buffer_text(&snapshot->out, "\"edges\":[");
    for (uint32_t i = 0; i < graph->holders.count; i++)
        write_edge(snapshot, EDGE_ELEMENT, i, i + 1);
    for (uint32_t i = 0; i < graph->holders.count; i++)
        for (size_t j = 0; j < graph->holders.items[i].targets; j++)
            write_edge(snapshot, EDGE_ELEMENT, (uint32_t)j,
                       snapshot->position.items[graph->targets.items[graph->holders.items[i].first + j]]);
    for (uint32_t id = 0; id < graph->ids && !snapshot->failed; id++) {
        if (analysis->walk.entries.items[id] != 0)
            write_edges_of(snapshot, id);
        if ((id & CLOCK_EVERY) == 0 && culet_memory_exhausted(analysis->memory))
            return;
    }
    culet_buffer_text(&snapshot->out, "],\n");
}

/* ---- */

static const char head[] =
    "{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\",\"name\",\"id\",\"self_size\",\"edge_count\",\"trace_node_id\","
    "\"detachedness\"],\"node_types\":[[\"hidden\",\"array\",\"string\",\"object\",\"code\",\"closure\",\"regexp\","
    "\"number\",\"native\",\"synthetic\",\"concatenated string\",\"sliced string\",\"symbol\",\"bigint\","
    "\"object shape\"],\"string\",\"number\",\"number\",\"number\",\"number\",\"number\"],\"edge_fields\":[\"type\","
    "\"name_or_index\",\"to_node\"],\"edge_types\":[[\"context\",\"element\",\"property\",\"internal\",\"hidden\","
    "\"shortcut\",\"weak\"],\"string_or_number\",\"node\"],\"trace_function_info_fields\":[\"function_id\",\"name\","
    "\"script_name\",\"script_id\",\"line\",\"column\"],\"trace_node_fields\":[\"id\",\"function_info_index\","
    "\"count\","
    "\"size\",\"children\"],\"sample_fields\":[\"timestamp_us\",\"last_assigned_id\"],\"location_fields\":["
    "\"object_index\",\"script_id\",\"line\",\"column\"]},";

static const char lists[] = "\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n";

static void write_all(struct snapshot *snapshot)
{
    struct culet_graph *graph = snapshot->analysis->graph;

    if (!culet_texts_prepare(&snapshot->texts)) {
        snapshot->failed = 1;
        return;
    }
    (void)text_of(snapshot, "", 0);
    (void)text_of(snapshot, "...", 3); /* OTHER_TEXT */
    memset(graph->wanted.items, 0xff, (graph->ids / 32 + 1) * sizeof(uint32_t));
    if (!count(snapshot))
        return;
    culet_buffer_text(&snapshot->out, head);
    culet_buffer_format(&snapshot->out,
                        "\"node_count\":%" PRIu64 ",\"edge_count\":%" PRIu64 ",\"trace_function_count\":0},\n",
                        snapshot->nodes, snapshot->edges);
    write_nodes(snapshot);
    write_edges(snapshot);
    culet_buffer_text(&snapshot->out, lists);
    write_texts(snapshot);
    flush(snapshot);
}

const char *culet_snapshot_write(struct culet_analysis *analysis, int fd)
{
    struct snapshot snapshot = {
        .analysis = analysis, .texts = {.most = MOST_TEXTS, .most_bytes = MOST_TEXT_BYTES}, .fd = fd};

    write_all(&snapshot);
    culet_buffer_free(&snapshot.out);
    culet_texts_free(&snapshot.texts);
    if (culet_memory_exhausted(analysis->memory))
        return culet_memory_problem(analysis->memory);
    return snapshot.failed ? "the snapshot cannot be written: the disk or memory is full" : NULL;
}
